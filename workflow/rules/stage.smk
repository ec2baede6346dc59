def staged_from(wildcards):
    """The user's files, and the product of another workload, that this workload reads."""
    upstream = study.upstream(wildcards.workload)
    products = [f"results/products/{upstream}.h5"] if upstream else []
    return [*map(str, study.input_files(wildcards.workload)), *products]


rule stage:
    """Operands in the kind's canonical axes: generated from the seed, or read from a file."""
    input:
        files=staged_from,
    output:
        staged="results/staged/{workload}.h5",
    log:
        "results/logs/stage/{workload}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
    message:
        "stage    {wildcards.workload}"
    script:
        "../scripts/stage.py"
