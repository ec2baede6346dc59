rule verify:
    """One record for each implementation and precision: errors, bound, verdict. Needs no GPU."""
    input:
        staged=staged_of_part,
        run=rules.run.output.run,
        ceilings=rules.calibrate.output.ceilings,
    output:
        records="results/records/{part}.jsonl",
    log:
        "results/logs/verify/{part}.log",
    wildcard_constraints:
        part=one_of(set(WORKLOADS) - set(SHARDED)),
    priority: 10 * GPU_PER_JOB  # the results of a run are large, and gone once this is done
    conda:
        "../../envs/environment.yaml"
    resources:
        **asks("verify"),
    params:
        case=case_of_part,
    message:
        "verify   {wildcards.part}"
    script:
        "../scripts/verify.py"
