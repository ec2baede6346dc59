"""Measure the ceilings of the device once."""

from pathlib import Path

from argand.runtime.ceilings import measure_ceilings

from workflow.steps.ceilings_file import write_ceilings
from workflow.steps.job_device import asked_gpus, job_device
from workflow.steps.joblog import job_log

with job_log(snakemake.log[0]) as log:
    with job_device(
        snakemake.params.device, asked_gpus(snakemake.resources), "calibrate", log
    ) as device:
        ceilings = measure_ceilings(device)
    write_ceilings(Path(snakemake.output.ceilings), ceilings)
    log.info("%s: copies %.0f GB/s", device, ceilings.copy_gbytes_per_s)
