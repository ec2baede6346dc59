"""Verify one workload: its results against fp64, as records."""

from workflow.threads import hold_blas

hold_blas()  # before anything imports NumPy: the job's threads are ours to share work out to

from pathlib import Path  # noqa: E402

from workflow.jobs.joblog import job_log  # noqa: E402
from workflow.processes import keep_freed_memory  # noqa: E402
from workflow.records import write_records  # noqa: E402
from workflow.shards import split_part  # noqa: E402
from workflow.steps.verification import verify  # noqa: E402
from workflow.storage.runs import read_ceilings  # noqa: E402
from workflow.study import workload_from_json  # noqa: E402

keep_freed_memory()
with job_log(snakemake.log[0]) as log:
    records = verify(
        workload_from_json(snakemake.params.case),
        Path(snakemake.input.staged),
        Path(snakemake.input.run),
        read_ceilings(Path(snakemake.input.run)),
        log,
        split_part(snakemake.wildcards.part)[1],
        snakemake.threads,
    )
    write_records(Path(snakemake.output.records), records)
