"""SciPy's own tests of softmax and log_softmax, pointed at ours on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest

Function = Callable[..., Any]


def with_axes(function: Function) -> Function:
    """Ours over any axis, several or all, at fp64: they are brought last and back."""

    def over(x: Any, axis: Any = None) -> Any:
        x = np.asarray(x)
        axes = tuple(range(x.ndim)) if axis is None else axis
        axes = tuple(n % x.ndim for n in (axes if isinstance(axes, tuple) else (axes,)))
        kept = tuple(n for n in range(x.ndim) if n not in axes)
        turned = x.transpose(*kept, *axes)
        rows = turned.reshape(*(x.shape[n] for n in kept), -1)
        found = function(rows, precision="fp64").reshape(turned.shape)
        return found.transpose(np.argsort((*kept, *axes)))[()]  # SciPy wants scalars of scalars

    return over


class Ours:
    """A pytest plugin that gives SciPy's test module our functions."""

    def pytest_runtest_setup(self, item: Any) -> None:
        item.module.softmax = with_axes(argand.softmax)
        item.module.log_softmax = with_axes(argand.log_softmax)


def test_scipys_own_pass(tmp_path: Path) -> None:
    """In a process of its own: SciPy's tests have markers and settings of their own."""
    pytest.importorskip("scipy.special.tests")
    command = [sys.executable, __file__, str(tmp_path / "pytest.ini")]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    passed = re.search(r"(\d+) passed", found.stdout)
    assert passed is not None
    assert int(passed[1]) >= 17
    assert "failed" not in found.stdout


if __name__ == "__main__":
    settings = Path(sys.argv[1])
    settings.write_text("[pytest]\n")
    sys.exit(
        pytest.main(
            [
                "-q", "-c", str(settings), "-p", "no:cacheprovider", "-p", "no:xdist",
                "-k", "TestSoftmax or TestLogSoftmax",
                "--pyargs", "scipy.special.tests.test_logsumexp",
            ],
            plugins=[Ours()],
        )
    )  # fmt: skip
