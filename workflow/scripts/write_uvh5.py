"""Write the visibilities of a product as UVH5."""

from pathlib import Path

from workflow.config.uvh5_site import Uvh5Site
from workflow.jobs.joblog import job_log
from workflow.steps.uvh5 import write_uvh5

with job_log(snakemake.log[0]) as log:
    site = Uvh5Site.model_validate_json(snakemake.params.site)
    baselines = write_uvh5(Path(snakemake.input.product), Path(snakemake.output.uvh5), site)
    log.info("%d baselines: %s", baselines, snakemake.output.uvh5)
