"""Draw one workload: error against throughput, and its product."""

from pathlib import Path

from workflow.data import MAX_DRAWN_BYTES
from workflow.figures.study import draw_pareto, draw_product
from workflow.jobs.joblog import job_log
from workflow.records import read_records
from workflow.storage.products import read_product
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    records = read_records(Path(snakemake.input.records))
    draw_pareto(Path(snakemake.output.pareto), workload.name, records)
    product = read_product(Path(snakemake.input.product), most=MAX_DRAWN_BYTES)
    draw_product(Path(snakemake.output.product), workload.picture, product)
    log.info("%s", product.title)
