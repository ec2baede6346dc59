"""Write the manifest of the results, and the study as it was read."""

import json
from itertools import chain
from pathlib import Path

from workflow.jobs.joblog import job_log
from workflow.outcome.manifest import write_manifest
from workflow.records import read_all_records

with job_log(snakemake.log[0]) as log:
    written = write_manifest(
        Path(snakemake.output.manifest),
        Path(snakemake.output.study),
        json.loads(snakemake.params.study),
        read_all_records(snakemake.input.records),
        {name: [*map(Path, files)] for name, files in snakemake.params.inputs.items()},
        [Path(path) for path in chain(snakemake.input.records, snakemake.input.results)],
        snakemake.params.parameters,
    )
    log.info("inputs: %d, files: %d", len(written["inputs"]), len(written["files"]))
