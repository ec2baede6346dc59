"""Run one workload: every precision and baseline, timed, into a run file."""

from pathlib import Path

from workflow.steps.execute import execute
from workflow.steps.job_device import asked_gpus, job_device
from workflow.steps.joblog import job_log
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    with job_device(
        snakemake.params.device, asked_gpus(snakemake.resources), f"run {workload.name}", log
    ) as device:
        summary = execute(
            workload, Path(snakemake.input.staged), Path(snakemake.output.run), device, log
        )
    log.info("%s", summary)
