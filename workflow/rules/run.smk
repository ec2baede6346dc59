# The results of every precision are large: they are kept only where the study asks for it.
KEPT = str if study.keep_runs else temp


# On a cluster the profile says how many (set-threads).
if ON_CLUSTER:
    TIMING_THREADS = 1
else:
    TIMING_THREADS = timing_threads(workflow.cores, GPUS)


rule run:
    """Every precision and baseline of a part, one after another in one process, timed."""
    input:
        staged=staged_of_part,
    output:
        run=KEPT("<results>/runs/{part}.h5"),
    log:
        "<results>/logs/run/{part}.log",
    benchmark:
        "<results>/benchmarks/run/{part}.tsv"
    priority: urgency_of_part
    conda:
        ENVIRONMENT
    threads: TIMING_THREADS
    resources:
        **asks("run"),
        gpu=GPU_PER_JOB,
    params:
        case=run_of_part,
        device=study.device,
        code=code_of_workload("run"),
        kernel_digest=lambda wildcards: kernel_digest(
            study.workload(whole(wildcards)).operation
        ),
    message:
        "run      {wildcards.part}"
    script:
        "../scripts/run.py"


rule growth_of_errors:
    """The growth of each precision's error with k, graded: of the kernels, whatever the study."""
    output:
        growth="<results>/records/growth.json",
    log:
        "<results>/logs/growth.log",
    conda:
        ENVIRONMENT
    threads: TIMING_THREADS
    resources:
        **asks(),
        gpu=GPU_PER_JOB,
    params:
        device=study.device,
        code=code_digest("grade"),
        kernel_digest=kernel_digest("gemm"),
    message:
        "grade    growth of the error with k"
    script:
        "../scripts/grade.py"
