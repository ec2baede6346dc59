"""Imports of a process of the workflow, which starts fifty times in the default study."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STEPS = (
    ("import argand", "scipy"),
    ("import workflow.study", "workflow.workloads.dft"),
    ("import workflow.workloads; workflow.workloads.KINDS['gemm']", "workflow.workloads.dft"),
    ("workflow.workloads.KINDS['dft']", "scipy"),
    ("import workflow.workloads.dft as dft; dft.check_window('hann')", "scipy"),
    ("import workflow.command", "matplotlib"),
    ("list(workflow.workloads.KINDS)", "matplotlib"),
    ("list(workflow.workloads.KINDS)", "qiskit"),
)
"""Steps of one process, and the modules that it has not imported after each."""


def test_not_what_it_does_not_need(root: Path) -> None:
    paths = os.pathsep.join((str(root / "kernels"), str(root)))
    lines = [f"{code}; print({absent!r} in sys.modules)" for code, absent in STEPS]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import sys", *lines])], text=True, capture_output=True,
        check=True, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    found = dict(zip(STEPS, done.stdout.split(), strict=True))
    assert [step for step, imported in found.items() if imported != "False"] == []
