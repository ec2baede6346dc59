"""Write the tables from the records of every workload."""

from pathlib import Path

from workflow.accuracy.grading import read_growth
from workflow.jobs.joblog import job_log
from workflow.records import read_all_records
from workflow.tables.study import write_accuracy, write_performance

with job_log(snakemake.log[0]) as log:
    records = read_all_records(snakemake.input.records)
    graded = snakemake.input.get("growth")
    growth = read_growth(Path(graded)) if graded else []
    out = {name: Path(path) for name, path in snakemake.output.items()}
    write_performance(
        records,
        csv_path=out["performance_csv"],
        markdown=out["performance_md"],
        hdf5=out["performance_h5"],
        html=out["performance_html"],
    )
    write_accuracy(
        records,
        growth,
        csv_path=out["accuracy_csv"],
        markdown=out["accuracy_md"],
        html=out["accuracy_html"],
    )
    verified = sum(record.verified for record in records)
    table = out["performance_md"]
    log.info("%d of %d results verified: %s", verified, len(records), table)
