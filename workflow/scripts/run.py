"""Run one workload: every precision and baseline, timed, into a run file."""

from pathlib import Path

from argand.device import resolve

from workflow.steps.execute import execute
from workflow.steps.joblog import job_log
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    execute(
        workload_from_json(snakemake.params.case),
        Path(snakemake.input.staged),
        Path(snakemake.output.run),
        resolve(snakemake.params.device),
        log,
    )
