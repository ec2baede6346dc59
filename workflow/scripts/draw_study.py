"""Draw what concerns the whole study: the fraction of the limits, the errors and their bounds."""

from pathlib import Path

from workflow.figures.accuracy import draw_accuracy
from workflow.figures.study import draw_limits
from workflow.jobs.joblog import job_log
from workflow.records import read_all_records

with job_log(snakemake.log[0]) as log:
    records = read_all_records(snakemake.input.records)
    draw_limits(Path(snakemake.output.limits), records)
    draw_accuracy(Path(snakemake.output.accuracy), records)
    log.info("%s", snakemake.output.limits)
