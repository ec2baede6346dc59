"""Grade how the error of our product grows with k."""

from pathlib import Path

from workflow.accuracy.grading import grade_growth, write_growth
from workflow.steps.job_device import asked_gpus, job_device
from workflow.steps.joblog import job_log

with job_log(snakemake.log[0]) as log:
    with job_device(
        snakemake.params.device, asked_gpus(snakemake.resources), "grade", log
    ) as device:
        rows = grade_growth(device, snakemake.params.precisions, snakemake.params.seed)
    write_growth(Path(snakemake.output.growth), rows)
    log.info("%s", ", ".join(f"{row.precision} {row.part} {row.grade}" for row in rows))
