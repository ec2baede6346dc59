"""Datasets whose names are HTML: no page of the results has them as elements."""

from __future__ import annotations

from html.parser import HTMLParser

import h5py
import numpy as np

from benchmarks.attack.campaign import Attempt, require
from benchmarks.attack.studies import Run


class _Tags(HTMLParser):
    """Notes the elements of a page as a browser takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)


MARK = "argandattack"
NAMES = (
    f"</script><{MARK}>", f"<{MARK}>", f"--><{MARK}>", f"'\"><{MARK}>", f"</title><{MARK}>",
)  # fmt: skip


def reports(attempt: Attempt) -> None:
    """Run a dataset whose name is HTML: no page of the results has it as an element."""
    name = NAMES[attempt.number % len(NAMES)]
    folder = attempt.folder
    with h5py.File(folder / "in.h5", "w") as file:
        file[name] = np.ones((4, 4), np.complex64)
    quoted = name.replace("'", "''")
    case = f"{{kind: gemm, input: {{file: in.h5, a: '{quoted}', b: '{quoted}'}}}}"
    study = f"device: cpu\nprecisions: [fp64]\nbaselines: none\nworkloads: {{x: {case}}}\n"
    (folder / "study.yaml").write_text(study)
    run = Run(attempt.ground.root, folder)
    if run.finish():
        require("StudyError" in run.said or "workloads." in run.said, f"{name}: {run.said[-300:]}")
        return
    report = Run(attempt.ground.root, folder, "--quiet", "all", "--report", "results/report.html")
    status = report.finish()
    require(status == 0, f"{name}: no report: {report.said[-300:]}")
    for page in (folder / "results").rglob("*.html"):
        tags = _Tags()
        tags.feed(page.read_text(errors="replace"))
        require(MARK not in tags.seen, f"{name} is an element of {page.name}")
