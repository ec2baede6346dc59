rule tabulate:
    """The tables, from the records of every workload."""
    input:
        records=expand(RECORDS, workload=WORKLOADS),
        growth=rules.growth_of_errors.output.growth if study.grade else [],
    output:
        performance_csv="<results>/tables/performance.csv",
        performance_md="<results>/tables/performance.md",
        performance_h5="<results>/tables/performance.h5",
        performance_html=report(
            "<results>/tables/performance.html",
            caption="../report/performance.rst",
            category="Tables",
            labels={"table": "performance"},
        ),
        accuracy_csv="<results>/tables/accuracy.csv",
        accuracy_md="<results>/tables/accuracy.md",
        accuracy_html=report(
            "<results>/tables/accuracy.html",
            caption="../report/accuracy.rst",
            category="Tables",
            labels={"table": "accuracy"},
        ),
    log:
        "<results>/logs/tabulate.log",
    conda:
        ENVIRONMENT
    params:
        code=code_digest("tabulate"),
    message:
        f"tabulate {RESULTS}/tables"
    script:
        "../scripts/tabulate.py"


rule draw:
    """Error against throughput, and a picture of the product, of one workload."""
    input:
        records=RECORDS,
        product=PRODUCT,
    output:
        pareto=report(
            "<results>/figures/pareto/{workload}.svg",
            caption="../report/pareto.rst",
            category="Error against throughput",
            labels={"workload": "{workload}"},
        ),
        product=report(
            "<results>/figures/products/{workload}.svg",
            caption="../report/product.rst",
            category="Products",
            labels={"workload": "{workload}"},
        ),
    log:
        "<results>/logs/draw/{workload}.log",
    conda:
        ENVIRONMENT
    resources:
        **asks("draw"),
    params:
        case=lambda wildcards: study.case_json(wildcards.workload),
        caption=lambda wildcards: study.workload(wildcards.workload).caption,
        code=code_of_workload("draw"),
    message:
        "draw     {wildcards.workload}"
    script:
        "../scripts/draw.py"


rule draw_sweep:
    """Time and error of a swept workload against what was swept."""
    input:
        records=lambda wildcards: expand(
            RECORDS, workload=study.sweeps[wildcards.sweep]
        ),
    output:
        curves=report(
            "<results>/figures/sweeps/{sweep}.svg",
            caption="../report/sweep.rst",
            category="Sweeps",
            labels={"workload": "{sweep}"},
        ),
    log:
        "<results>/logs/sweeps/{sweep}.log",
    wildcard_constraints:
        sweep=one_of(SWEEPS),
    conda:
        ENVIRONMENT
    params:
        points=lambda wildcards: study.sweep_json(wildcards.sweep),
        code=code_digest("draw_sweep"),
    message:
        "draw     {wildcards.sweep}, swept"
    script:
        "../scripts/draw_sweep.py"


rule draw_study:
    """The fraction of the device's limits, and the distance from fp64 with the bounds of each error."""
    input:
        records=expand(RECORDS, workload=WORKLOADS),
    output:
        limits=report(
            "<results>/figures/limits.svg",
            caption="../report/limits.rst",
            category="Limits",
            labels={"figure": "fraction of the limit"},
        ),
        accuracy=report(
            "<results>/figures/accuracy.svg",
            caption="../report/bounds.rst",
            category="Accuracy",
            labels={"figure": "errors and their bounds"},
        ),
    log:
        "<results>/logs/draw_study.log",
    conda:
        ENVIRONMENT
    params:
        code=code_digest("draw_study"),
    message:
        "draw     the whole study"
    script:
        "../scripts/draw_study.py"


rule answer:
    """The page that begins with the answer: a row a workload, figures, all rows."""
    input:
        records=expand(RECORDS, workload=WORKLOADS),
        limits=rules.draw_study.output.limits,
        accuracy=rules.draw_study.output.accuracy,
        sweeps=expand(rules.draw_sweep.output.curves, sweep=SWEEPS),
        products=expand(rules.draw.output.product, workload=WORKLOADS),
        made=expand(PRODUCT, workload=WORKLOADS),
    output:
        page="<results>/answer.html",
        markdown="<results>/answer.md",
        figure=report(
            "<results>/figures/answer.svg",
            caption="../report/answer.rst",
            category="Answer",
            labels={"figure": "times as fast as the best peer"},
        ),
    log:
        "<results>/logs/answer.log",
    conda:
        ENVIRONMENT
    params:
        cases=[study.case_json(name) for name in WORKLOADS],
        sweeps=SWEEPS,
        code=code_digest("answer"),
    message:
        f"answer   {RESULTS}/answer.html"
    script:
        "../scripts/answer.py"


rule draw_growth:
    """The growth of errors with k; of a study with `grade: true`, or asked for by name."""
    input:
        growth=rules.growth_of_errors.output.growth,
    output:
        growth=report(
            "<results>/figures/growth.svg",
            caption="../report/growth.rst",
            category="Accuracy",
            labels={"figure": "growth of the error with k"},
        ),
    log:
        "<results>/logs/draw_growth.log",
    conda:
        ENVIRONMENT
    params:
        code=code_digest("draw_growth"),
    message:
        "draw     growth of the error with k"
    script:
        "../scripts/draw_growth.py"


rule manifest:
    """Record what was run, where, from which code and data, with the SHA-256 of each file that came of it."""
    input:
        records=expand(RECORDS, workload=WORKLOADS),
        results=[
            *rules.tabulate.output,
            *(rules.tabulate_shards.output if SHARDED else []),
            *expand(PRODUCT, workload=WORKLOADS),
            *expand(rules.write_uvh5.output, workload=UVH5),
            *expand(rules.deliver.output.product, part=SHARDS),
        ],
    output:
        manifest="<results>/manifest.json",
        study="<results>/study.yaml",
    log:
        "<results>/logs/manifest.log",
    conda:
        ENVIRONMENT
    resources:
        **asks(),
    params:
        study=study.as_read(),
        parameters=lambda wildcards: {
            name: study.parameters(name) for name in sorted(WORKLOADS)
        },
        inputs={
            name: list(map(str, study.input_files(name))) for name in sorted(WORKLOADS)
        },
        code=code_digest("manifest"),
    message:
        "manifest of the results"
    script:
        "../scripts/manifest.py"
