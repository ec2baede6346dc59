# Results are verified on several cores, several workloads at once. Beside timings on GPUs they keep to the
# cores that those leave, less some for what takes one core: a GPU never waits for a verification to
# end, although that comes first when it frees the disk. On a cluster the profile says how many
# threads (set-threads).
PROOF_THREADS = 1 if ON_CLUSTER else max(1, workflow.cores // 8)
PROOFS = 0
if RUNS_HERE and GPUS:
    PROOFS = max(PROOF_THREADS, workflow.cores - GPUS * TIMING_THREADS - PROOF_THREADS)
    workflow.register_resource("proof", PROOFS)


rule verify:
    """One record for each implementation and precision: errors, bound, verdict. Needs no GPU."""
    input:
        staged=staged_of_part,
        run=rules.run.output.run,
    output:
        records="<results>/records/{part}.jsonl",
    log:
        "<results>/logs/verify/{part}.log",
    benchmark:
        "<results>/benchmarks/verify/{part}.tsv"
    wildcard_constraints:
        part=one_of(set(WORKLOADS) - set(SHARDED)),
    priority: 10 * GPU_PER_JOB  # the results of a run are large, and gone once this is done
    conda:
        ENVIRONMENT
    threads: PROOF_THREADS
    resources:
        **asks("verify"),
        proof=lambda wildcards, threads: threads if PROOFS else 0,
    params:
        case=case_of_part,
        code=code_of_workload("verify"),
    message:
        "verify   {wildcards.part}"
    script:
        "../scripts/verify.py"
