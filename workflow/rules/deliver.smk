rule deliver:
    """The answer at the precision asked for, with axes and its certificate."""
    input:
        staged=rules.stage.output.staged,
        run=rules.run.output.run,
        records=rules.verify.output.records,
    output:
        product="results/products/{workload}.h5",
    log:
        "results/logs/deliver/{workload}.log",
    priority: 10 * GPU_PER_JOB  # the results of a run are large, and gone once this is done
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: asked(wildcards.workload, "deliver")
        .again(attempt)
        .memory_mb,
        runtime=lambda wildcards, attempt: asked(wildcards.workload, "deliver")
        .again(attempt)
        .minutes,
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
    message:
        "deliver  {wildcards.workload}"
    script:
        "../scripts/deliver.py"
