"""Draw what concerns the whole study: growth of errors, fraction of the limits."""

from itertools import chain
from pathlib import Path

from workflow.accuracy.grading import read_growth
from workflow.figures.study import draw_growth, draw_limits
from workflow.records import read_records
from workflow.steps.joblog import job_log

with job_log(snakemake.log[0]) as log:
    records = chain.from_iterable(read_records(Path(path)) for path in snakemake.input.records)
    draw_growth(Path(snakemake.output.growth), read_growth(Path(snakemake.input.growth)))
    draw_limits(Path(snakemake.output.limits), list(records))
    log.info("results/figures")
