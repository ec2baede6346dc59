"""The kernels of NumPy's OpenBLAS."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
from argand.runtime.numpy_blas import openblas_kernels


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names kernels of x86")
@pytest.mark.skipif(openblas_kernels() is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("name", ["Haswell", "Sandybridge"])
def test_the_kernels_are_those_that_openblas_was_told_to_take(name: str) -> None:
    program = "from argand.runtime.numpy_blas import openblas_kernels; print(openblas_kernels())"
    environment = os.environ | {"OPENBLAS_CORETYPE": name}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == name
