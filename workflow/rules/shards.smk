# The rules that join the shards of a workload, which is staged once: numbers drawn from the seed, and
# checks of a user's file, are those of the whole, whatever the number of shards. Each shard's run,
# verification and delivery are jobs of their own that read their stretch of the staged file, so a
# cluster spreads them.


# Rules of their own: a cluster's profile has one job verify, deliver and draw a workload, and a shard
# is delivered only when all are verified.
use rule verify as verify_shard with:
    wildcard_constraints:
        part=one_of(SHARDS),


use rule deliver as deliver_shard with:
    wildcard_constraints:
        part=one_of(SHARDS),


rule combine:
    """The records of the whole workload, from those of its shards."""
    input:
        staged=rules.stage.output.staged,
        shards=lambda wildcards: expand(
            rules.verify.output.records, part=study.parts(wildcards.workload)
        ),
    output:
        records=RECORDS,
    log:
        "<results>/logs/combine/{workload}.log",
    wildcard_constraints:
        workload=one_of(SHARDED),
    conda:
        ENVIRONMENT
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
        code=code_of_workload("combine"),
    message:
        "combine  {wildcards.workload}"
    script:
        "../scripts/combine.py"


rule gather:
    """The answer as one product: a virtual dataset over the shards' own, with their checksums."""
    input:
        staged=rules.stage.output.staged,
        records=rules.combine.output.records,
        shards=lambda wildcards: expand(
            rules.deliver.output.product, part=study.parts(wildcards.workload)
        ),
    output:
        product=PRODUCT,
    log:
        "<results>/logs/gather/{workload}.log",
    wildcard_constraints:
        workload=one_of(SHARDED),
    conda:
        ENVIRONMENT
    resources:
        **asks("gather"),
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
        code=code_of_workload("gather"),
    message:
        "gather   {wildcards.workload}"
    script:
        "../scripts/gather.py"


rule tabulate_shards:
    """A row for each shard, implementation and precision."""
    input:
        records=expand(
            rules.verify.output.records,
            part=SHARDS,
        ),
    output:
        csv="<results>/tables/shards.csv",
        markdown="<results>/tables/shards.md",
    log:
        "<results>/logs/tabulate_shards.log",
    conda:
        ENVIRONMENT
    params:
        code=code_digest("tabulate_shards"),
    message:
        "tabulate the shards"
    script:
        "../scripts/tabulate_shards.py"
