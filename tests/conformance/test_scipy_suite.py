"""SciPy's tests of its transforms, with `argand.fft_backend` in SciPy's place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = ("test_basic", "test_multithreading", "test_helper", "test_real_transforms")
"""All of scipy.fft.tests but those of backends, which set their own, and of Hankel transforms."""


@pytest.mark.exhaustive
def test_all_of_them_pass(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "as_scipy_fft", "-p",
         "no:cacheprovider", "-W", "ignore", "--pyargs",
         *(f"scipy.fft.tests.{suite}" for suite in SUITES)],
        cwd=tmp_path, env=environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    (ours,) = re.findall(r"calls: (\d+) argand", done.stdout)
    assert int(ours) > 1000
