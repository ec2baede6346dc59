"""Combine the records of a workload's shards into those of the whole."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.records import read_records, write_records
from workflow.shards import shards
from workflow.steps.combining import combine
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    files = map(Path, snakemake.input.shards)
    found = dict(zip(shards(workload.case.shards), map(read_records, files), strict=True))
    records = combine(workload, Path(snakemake.input.staged), found, log)
    write_records(Path(snakemake.output.records), records)
