"""Deliver one workload: the chosen result, with axes and certificate, as a product file."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.records import read_records
from workflow.shards import split_part
from workflow.steps.delivery import deliver
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    deliver(
        workload_from_json(snakemake.params.case),
        split_part(snakemake.wildcards.part)[1],
        Path(snakemake.input.staged),
        Path(snakemake.input.run),
        read_records(Path(snakemake.input.records)),
        read_records(Path(snakemake.input.own)),
        Path(snakemake.output.product),
        log,
    )
