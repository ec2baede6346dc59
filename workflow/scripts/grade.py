"""Grade how the error of our product grows with k."""

from pathlib import Path

from argand.device import resolve

from workflow.accuracy.grading import grade_growth, write_growth
from workflow.steps.joblog import job_log

with job_log(snakemake.log[0]) as log:
    rows = grade_growth(
        resolve(snakemake.params.device), snakemake.params.precisions, snakemake.params.seed
    )
    write_growth(Path(snakemake.output.growth), rows)
    log.info("%s", ", ".join(f"{row.precision} {row.part} {row.grade}" for row in rows))
