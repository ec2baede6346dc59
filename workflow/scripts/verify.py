"""Verify one workload: its results against fp64, as records."""

from pathlib import Path

from argand.ceilings import Ceilings

from workflow.methods.shards import split_part
from workflow.records import write_records
from workflow.steps.joblog import job_log
from workflow.steps.verification import verify
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    records = verify(
        workload_from_json(snakemake.params.case),
        Path(snakemake.input.staged),
        Path(snakemake.input.run),
        Ceilings.from_json(Path(snakemake.input.ceilings).read_text()),
        log,
        split_part(snakemake.wildcards.part)[1],
    )
    write_records(Path(snakemake.output.records), records)
