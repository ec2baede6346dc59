"""CuPy's tests of transforms and softmax, with argand's calls in the place of cupyx.scipy's.

CuPy's wheels have none of them: CUPY_TESTS names a clone. Left out are tests of cuFFT's plans and
of SciPy's backends, which name modules, and those of logsumexp, most of which give it weights.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

CLONE = os.environ.get("CUPY_TESTS", "")
SUITES = {
    "fft_tests/test_fft.py::TestFft": "not plan and not backend",
    "special_tests/test_softmax.py": "",
    "special_tests/test_log_softmax.py": "",
}
"""Files of tests/cupyx_tests/scipy_tests, and which of their tests."""


@pytest.mark.skipif(not CLONE, reason="CUPY_TESTS names no clone of CuPy")
@pytest.mark.parametrize("suite", SUITES)
def test_all_of_them_pass(gpu: object, suite: str, tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "as_cupyx", "-p",
         "no:cacheprovider", "-W", "ignore", "-k", SUITES[suite],
         f"{CLONE}/tests/cupyx_tests/scipy_tests/{suite}"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (calls,) = re.findall(r"calls: (\d+) of", done.stdout)
    assert int(calls) > 0
