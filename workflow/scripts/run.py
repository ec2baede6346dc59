"""Run one workload: every precision and baseline, timed, into a run file."""

from workflow.threads import rest_blas

rest_blas()  # before anything imports NumPy: one implementation is timed right after another

from pathlib import Path  # noqa: E402

from argand.runtime.measuring.ceilings import measure_ceilings  # noqa: E402

from workflow.jobs.job_device import asked_gpus, job_device  # noqa: E402
from workflow.jobs.joblog import job_log  # noqa: E402
from workflow.shards import split_part  # noqa: E402
from workflow.steps.execute import execute  # noqa: E402
from workflow.steps.kept_times import KeptTimes, work  # noqa: E402
from workflow.storage.run_folder import results_folder  # noqa: E402
from workflow.study import workload_from_json  # noqa: E402

with job_log(snakemake.log[0]) as log:
    workload = workload_from_json(snakemake.params.case)
    part = snakemake.wildcards.part
    gpus = asked_gpus(snakemake.resources)
    with job_device(snakemake.params.device, gpus, f"run {part}", log) as device:
        staged, shard = Path(snakemake.input.staged), split_part(part)[1]
        kept = KeptTimes.read(
            results_folder() / "times" / f"{part}.json",
            work(workload, staged, device, shard, snakemake.params.code),
            log,
        )
        summary = execute(
            workload,
            staged,
            Path(snakemake.output.run),
            device,
            log,
            shard,
            measure_ceilings,
            kept,
        )
    log.info("%s", summary)
