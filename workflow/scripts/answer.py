"""Write the page that begins with the answer, from the records of every workload."""

from itertools import chain
from pathlib import Path

from workflow.figures.answer import draw_answer
from workflow.records import read_records
from workflow.steps.delivery import choices
from workflow.steps.joblog import job_log
from workflow.study import workload_from_json
from workflow.tables.answer import answers
from workflow.tables.answer_page import Shown, write_answer

SPEEDS = (
    "How many times as fast as the best peer of its class each answer is; the bar is the interval "
    "of both medians, the colour the precision. Right of 1 is faster."
)
LIMITS = (
    "What fraction of the device's own limit each verified result reached. The limit is the "
    "shortest time that the measured ceilings allow, by operations or by bytes."
)

with job_log(snakemake.log[0]) as log:
    records = list(chain.from_iterable(read_records(Path(p)) for p in snakemake.input.records))
    workloads = [workload_from_json(text) for text in snakemake.params.cases]
    delivered, failures = choices(workloads, records)
    found = answers(records, delivered, failures)
    figure = Path(snakemake.output.figure)
    draw_answer(figure, found)
    pictures = [
        Shown(
            f"{name} at {delivered.get(name, 'no precision')}",
            "The product as people of its field are used to seeing it. The numbers, with axes, "
            f"units and a certificate, are in products/{name}.h5 beside this page.",
            Path(path),
        )
        for name, path in zip(delivered, snakemake.input.products, strict=True)
    ]
    write_answer(
        found,
        records,
        Shown("Times as fast as the best peer", SPEEDS, figure),
        [Shown("Limits", LIMITS, Path(snakemake.input.limits)), *pictures],
        page=Path(snakemake.output.page),
        markdown=Path(snakemake.output.markdown),
    )
    log.info("%d answers: %s", len(found), snakemake.output.page)
