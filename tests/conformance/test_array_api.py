"""The array API's tests of fft and ifft, with argand's transforms in NumPy's place.

They are published as a repository alone (data-apis/array-api-tests): ARRAY_API_TESTS names a clone
with its submodule, whose requirements are installed. Its tests of matmul draw real numbers alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CLONE = os.environ.get("ARRAY_API_TESTS", "")


@pytest.mark.skipif(not CLONE, reason="ARRAY_API_TESTS names no clone of the array API's tests")
def test_transforms() -> None:
    here = str(Path(__file__).parent)
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-deadline",
         "array_api_tests/test_fft.py::test_fft", "array_api_tests/test_fft.py::test_ifft"],
        cwd=CLONE, text=True, capture_output=True, check=False,
        env=os.environ | {"PYTHONPATH": path, "ARRAY_API_TESTS_MODULE": "as_array_api"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = re.findall(r" (\d+) (i?fft)\b", done.stdout.rpartition("calls:")[2])
    assert {name for _, name in found} == {"fft", "ifft"}
    assert min(int(count) for count, _ in found) >= 100
