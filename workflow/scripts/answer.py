"""Write the page that begins with the answer, from the records of every workload."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.outcome.answering import AnswerFigures, AnswerFiles, write_answers
from workflow.records import read_all_records
from workflow.study import workload_from_json

with job_log(snakemake.log[0]) as log:
    workloads = [workload_from_json(text) for text in snakemake.params.cases]
    names = [workload.name for workload in workloads]
    drawn = AnswerFigures(
        limits=Path(snakemake.input.limits),
        accuracy=Path(snakemake.input.accuracy),
        sweeps=dict(zip(snakemake.params.sweeps, map(Path, snakemake.input.sweeps), strict=True)),
        products=dict(zip(names, map(Path, snakemake.input.products), strict=True)),
    )
    found = write_answers(
        workloads,
        read_all_records(snakemake.input.records),
        drawn,
        AnswerFiles(**{name: Path(path) for name, path in snakemake.output.items()}),
        made=dict(zip(names, map(Path, snakemake.input.made), strict=True)),
    )
    log.info("answers: %d, in %s", len(found), snakemake.output.page)
