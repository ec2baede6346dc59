"""Draw time and error of a swept workload against what was swept."""

import json
from pathlib import Path

from workflow.figures.sweeps import draw_sweep
from workflow.jobs.joblog import job_log
from workflow.records import read_all_records

with job_log(snakemake.log[0]) as log:
    records = read_all_records(snakemake.input.records)
    points = json.loads(snakemake.params.points)
    path = Path(snakemake.output.curves)
    draw_sweep(path, snakemake.wildcards.sweep, records, points)
    log.info("%d cases: %s", len(points), path)
