rule verify:
    """One record for each implementation and precision: errors, bound, verdict. Needs no GPU."""
    input:
        staged=rules.stage.output.staged,
        run=rules.run.output.run,
        ceilings=rules.calibrate.output.ceilings,
    output:
        records="results/records/{workload}.jsonl",
    log:
        "results/logs/verify/{workload}.log",
    priority: 10 * GPU_PER_JOB  # the results of a run are large, and gone once this is done
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: asked(wildcards.workload, "verify")
        .again(attempt)
        .memory_mb,
        runtime=lambda wildcards, attempt: asked(wildcards.workload, "verify")
        .again(attempt)
        .minutes,
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
    message:
        "verify   {wildcards.workload}"
    script:
        "../scripts/verify.py"
