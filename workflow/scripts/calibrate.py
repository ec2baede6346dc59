"""Measure the ceilings of the device once."""

from pathlib import Path

from argand.ceilings import measure_ceilings
from argand.device import resolve

from workflow.steps.joblog import job_log
from workflow.storage.files import atomic_text

with job_log(snakemake.log[0]) as log:
    device = resolve(snakemake.params.device)
    ceilings = measure_ceilings(device)
    atomic_text(Path(snakemake.output.ceilings), ceilings.to_json())
    log.info("%s: copies %.0f GB/s", device, ceilings.copy_gbytes_per_s)
