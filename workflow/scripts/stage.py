"""Stage one workload: its operands into a staged file."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.steps.staging import stage
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    stage(
        workload_from_json(snakemake.params.case),
        [Path(file) for file in snakemake.input.get("files", [])],
        Path(snakemake.output.staged),
        log,
    )
