"""Write the table of shards from their records."""

from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.records import read_all_records
from workflow.tables.study import write_shards

with job_log(snakemake.log[0]) as log:
    records = read_all_records(snakemake.input.records)
    write_shards(
        records, csv_path=Path(snakemake.output.csv), markdown=Path(snakemake.output.markdown)
    )
    log.info("%d results of shards: %s", len(records), snakemake.output.markdown)
