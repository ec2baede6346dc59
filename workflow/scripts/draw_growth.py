"""Draw how errors grow with k."""

from pathlib import Path

from workflow.accuracy.grading import read_growth
from workflow.figures.study import draw_growth
from workflow.jobs.joblog import job_log

with job_log(snakemake.log[0]) as log:
    draw_growth(Path(snakemake.output.growth), read_growth(Path(snakemake.input.growth)))
    log.info("%s", snakemake.output.growth)
