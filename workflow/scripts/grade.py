"""Grade how the error of our product grows with k."""

from pathlib import Path

from argand import PRECISIONS

from workflow.accuracy.grading import grade_growth, write_growth
from workflow.jobs.job_device import asked_gpus, job_device
from workflow.jobs.joblog import job_log

SEED = 20260101
"""A study's would have an edit of it measure the same kernels again."""

with job_log(snakemake.log[0]) as log:
    with job_device(
        snakemake.params.device, asked_gpus(snakemake.resources), "grade", log
    ) as device:
        rows = grade_growth(device, tuple(PRECISIONS), SEED)
    write_growth(Path(snakemake.output.growth), rows)
    log.info("%s", ", ".join(f"{row.precision} {row.part} {row.grade}" for row in rows))
