"""CuPy's tests of transforms and softmax, with argand's calls in the place of cupyx.scipy's.

CuPy's wheels have none of them: CUPY_TESTS names a clone of the installed version. Left out are
tests of cuFFT's plans and of SciPy's backends, which name modules, and those of logsumexp, most of
which give it weights.
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
    "fft_tests/test_fft.py::TestFft": ("not plan and not backend", {"fft", "ifft"}),
    "special_tests/test_softmax.py": ("", {"softmax"}),
    "special_tests/test_log_softmax.py": ("", {"log_softmax"}),
}
"""Files of tests/cupyx_tests/scipy_tests: which of their tests, and the calls of ours in these."""


@pytest.mark.skipif(not CLONE, reason="CUPY_TESTS names no clone of CuPy")
@pytest.mark.parametrize("suite", SUITES)
def test_all_of_them_pass(gpu: object, suite: str, tmp_path: Path) -> None:
    which, names = SUITES[suite]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "as_cupyx", "-p",
         "no:cacheprovider", "-W", "ignore", "-k", which,
         f"{CLONE}/tests/cupyx_tests/scipy_tests/{suite}"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (calls,) = re.findall("^calls: (.+)$", done.stdout, re.MULTILINE)
    assert {counted.split()[1] for counted in calls.split(", ")} == names
