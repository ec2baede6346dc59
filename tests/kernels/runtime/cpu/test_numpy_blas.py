"""The kernels of NumPy's OpenBLAS."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest
from argand.runtime.cpu import numpy_blas
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, openblas_kernels, openblas_threads


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names kernels of x86")
@pytest.mark.skipif(openblas_kernels() is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("name", ["Haswell", "Sandybridge"])
def test_the_kernels_are_those_that_openblas_was_told_to_take(name: str) -> None:
    program = (
        "from argand.runtime.cpu.numpy_blas import openblas_kernels; print(openblas_kernels())"
    )
    environment = os.environ | {"OPENBLAS_CORETYPE": name}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == name


@pytest.mark.skipif(openblas_threads() is None, reason="NumPy has another BLAS")
def test_the_number_of_threads_is_what_openblas_was_told() -> None:
    program = (
        "from argand.runtime.cpu.numpy_blas import openblas_threads; print(openblas_threads())"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(found.stdout) == 1


@pytest.mark.parametrize(
    ("kernels", "cpu_has", "expected"),
    [
        ("SkylakeX", True, True),
        ("Cooperlake", True, True),
        ("SapphireRapids", True, True),
        ("of a CPU to come", True, True),
        ("Haswell", True, False),
        ("Zen", True, False),
        ("Nehalem", True, False),
        ("SkylakeX", False, False),
        ("NeoverseV2", None, False),
        (None, True, False),
    ],
)
def test_kernels_for_avx512_are_those_of_a_cpu_that_has_it(
    kernels: str | None, cpu_has: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = {} if cpu_has is None else {"AVX512_SKX": cpu_has}
    monkeypatch.setattr(numpy_blas, "openblas_kernels", lambda: kernels)
    monkeypatch.setattr(
        numpy_blas, "import_module", lambda _: SimpleNamespace(__cpu_features__=features)
    )
    assert has_avx512_kernels() is expected
