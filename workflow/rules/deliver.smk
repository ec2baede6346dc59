rule deliver:
    """The answer at the precision asked for, with axes and its certificate."""
    input:
        staged=staged_of_part,
        run=rules.run.output.run,
        records=lambda wildcards: RECORDS.format(workload=whole(wildcards)),
        own=rules.verify.output.records,
    output:
        product="<results>/products/{part}.h5",
    log:
        "<results>/logs/deliver/{part}.log",
    benchmark:
        "<results>/benchmarks/deliver/{part}.tsv"
    wildcard_constraints:
        part=one_of(set(WORKLOADS) - set(SHARDED)),
    priority: 10 * GPU_PER_JOB  # the results of a run are large, and gone once this is done
    conda:
        ENVIRONMENT
    resources:
        **asks("deliver"),
    params:
        case=case_of_part,
        code=code_of_workload("deliver"),
    message:
        "deliver  {wildcards.part}"
    script:
        "../scripts/deliver.py"
