"""Run one workload: every precision and baseline, timed, into a run file."""

from pathlib import Path

from workflow.shards import split_part
from workflow.steps.execute import execute
from workflow.steps.job_device import asked_gpus, job_device
from workflow.steps.joblog import job_log
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    part = snakemake.wildcards.part
    gpus = asked_gpus(snakemake.resources)
    with job_device(snakemake.params.device, gpus, f"run {part}", log) as device:
        summary = execute(
            workload,
            Path(snakemake.input.staged),
            Path(snakemake.output.run),
            device,
            log,
            split_part(part)[1],
        )
    log.info("%s", summary)
