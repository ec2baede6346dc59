"""What a process of the workflow imports: it starts fifty times in the default study."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import argand", "scipy"),
        ("import workflow.study", "workflow.workloads.dft"),
        ("import workflow.workloads; workflow.workloads.KINDS['gemm']", "workflow.workloads.dft"),
        ("import workflow.workloads; workflow.workloads.KINDS['dft']", "scipy"),
        ("import workflow.workloads.dft as dft; dft.check_window('hann')", "scipy"),
        ("import workflow.workloads; list(workflow.workloads.KINDS)", "matplotlib"),
        ("import workflow.workloads; list(workflow.workloads.KINDS)", "qiskit"),
    ],
)
def test_not_what_it_does_not_need(root: Path, code: str, absent: str) -> None:
    paths = os.pathsep.join((str(root / "kernels"), str(root)))
    shown = f"{code}\nimport sys; print({absent!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", shown], text=True, capture_output=True, check=True,
        env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert done.stdout == "False\n"
