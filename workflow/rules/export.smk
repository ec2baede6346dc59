rule write_uvh5:
    """The visibilities of a product as UVH5, of a workload whose `uvh5` says where and when it was."""
    input:
        product=PRODUCT,
    output:
        uvh5="<results>/products/{workload}.uvh5",
    log:
        "<results>/logs/write_uvh5/{workload}.log",
    wildcard_constraints:
        workload=one_of(UVH5),
    conda:
        ENVIRONMENT
    resources:
        **asks("gather"),
    params:
        site=lambda wildcards: study.workloads[
            wildcards.workload
        ].uvh5.model_dump_json(),
        code=code_digest("write_uvh5"),
    message:
        "export   {wildcards.workload}.uvh5"
    script:
        "../scripts/write_uvh5.py"
