"""SciPy's tests of transforms and softmax, with argand's calls in the place of SciPy's.

Of transforms they are all of scipy.fft.tests but those of backends, which set their own, and of
Hankel transforms; `argand.fft_backend` computes them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FFT = ("test_basic", "test_multithreading", "test_helper", "test_real_transforms")
SUITES = {
    "as_scipy_fft": ([f"scipy.fft.tests.{suite}" for suite in FFT], 1000),
    "as_scipy_special": (
        ["scipy.special.tests.test_logsumexp", "-k", "TestSoftmax or TestLogSoftmax"], 17,
    ),
}  # fmt: skip
"""Plugins of this folder: the tests that run with each, and how many calls of ours they make."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("plugin", SUITES)
def test_all_of_them_pass(plugin: str, tmp_path: Path) -> None:
    suite, least = SUITES[plugin]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", plugin, "-p",
         "no:cacheprovider", "-W", "ignore", "--pyargs", *suite],
        cwd=tmp_path, env=environment, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    (ours,) = re.findall(r"calls: (\d+) argand", done.stdout)
    assert int(ours) >= least
