"""Join the products of a workload's shards into one."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.records import read_records
from workflow.shards import shards
from workflow.steps.gathering import gather
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    files = map(Path, snakemake.input.shards)
    gather(
        workload,
        Path(snakemake.input.staged),
        dict(zip(shards(workload.case.shards), files, strict=True)),
        read_records(Path(snakemake.input.records)),
        Path(snakemake.output.product),
        log,
    )
