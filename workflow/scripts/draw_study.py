"""Draw what concerns the whole study: the fraction of the limits."""

from itertools import chain
from pathlib import Path

from workflow.figures.study import draw_limits
from workflow.records import read_records
from workflow.steps.joblog import job_log

with job_log(snakemake.log[0]) as log:
    records = chain.from_iterable(read_records(Path(path)) for path in snakemake.input.records)
    draw_limits(Path(snakemake.output.limits), list(records))
    log.info("%s", snakemake.output.limits)
