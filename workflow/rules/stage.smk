rule stage:
    """Operands in the kind's canonical axes: generated from the seed, or read from a file."""
    input:
        files=lambda wildcards: study.staged_from(wildcards.workload),
    output:
        staged="<results>/staged/{workload}.h5",
    log:
        "<results>/logs/stage/{workload}.log",
    benchmark:
        "<results>/benchmarks/stage/{workload}.tsv"
    priority: urgency_of_part
    conda:
        ENVIRONMENT
    resources:
        **asks("stage"),
    params:
        case=lambda wildcards: study.staged_json(wildcards.workload),
        inputs=lambda wildcards: study.input_states(wildcards.workload),
        code=code_of_workload("stage"),
    message:
        "stage    {wildcards.workload}"
    script:
        "../scripts/stage.py"
