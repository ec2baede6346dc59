"""SciPy's own tests of fft and ifft, pointed at ours on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest
from scipy import fft


class Ours:
    """A pytest plugin that has scipy.fft call ours, and counts how often it did."""

    calls = 0

    def pytest_sessionstart(self) -> None:
        called = argand.FftBackend.__ua_function__

        def counted(backend: Any, *arguments: Any) -> Any:
            found = called(backend, *arguments)
            Ours.calls += found is not NotImplemented
            return found

        argand.FftBackend.__ua_function__ = counted  # type: ignore[method-assign]
        fft.set_global_backend(argand.fft_backend)  # of every thread
        fft.register_backend("scipy")  # for what is not ours

    def pytest_sessionfinish(self) -> None:
        print(f"\n{Ours.calls} calls were ours")


def test_scipys_own_pass(tmp_path: Path) -> None:
    """In a process of its own: SciPy's tests have markers and settings of their own."""
    pytest.importorskip("scipy.fft.tests")
    command = [sys.executable, __file__, str(tmp_path / "pytest.ini")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    passed = re.search(r"(\d+) passed", found.stdout)
    assert passed is not None
    assert int(passed[1]) >= 40
    calls = re.search(r"(\d+) calls were ours", found.stdout)
    assert calls is not None
    assert int(calls[1]) >= 1000


def test_what_is_not_ours_is_left_to_the_next_backend() -> None:
    x = np.arange(6.0)
    with fft.set_backend(argand.fft_backend):
        np.testing.assert_allclose(fft.rfft(x), np.fft.rfft(x))
        assert fft.fft(x.astype(np.longdouble)).dtype == np.clongdouble
    with fft.set_backend(argand.fft_backend, only=True), pytest.raises(NotImplementedError):
        fft.rfft(x)


@pytest.mark.parametrize(("single", "error"), [("3xfp16", 1e-6), ("tf32", 1e-3)])
def test_single_numbers_take_the_backends_precision(
    rng: np.random.Generator, single: str, error: float
) -> None:
    x = rng.standard_normal((3, 64, 2)).astype(np.float32).view(np.complex64)[..., 0]
    exact = np.fft.fft(x.astype(complex), 50, axis=-1)
    with fft.set_backend(argand.FftBackend(single=single), only=True):
        found = fft.fft(x, 50)
    assert found.dtype == np.complex64
    assert 1e-9 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < error
    with fft.set_backend(argand.fft_backend, only=True):
        assert fft.ifft(x.astype(complex), norm="ortho").dtype == np.complex128


if __name__ == "__main__":
    settings = Path(sys.argv[1])
    settings.write_text("[pytest]\n")
    sys.exit(
        pytest.main(
            ["-q", "-s", "-c", str(settings), "-p", "no:cacheprovider", "-p", "no:xdist",
             "--pyargs", "scipy.fft.tests.test_basic"],
            plugins=[Ours()],
        )
    )  # fmt: skip
