"""SciPy's own tests of softmax and log_softmax, pointed at ours on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import argand
import numpy as np
import pytest
import scipys_own

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


@pytest.mark.exhaustive
def test_scipys_own_pass(tmp_path: Path) -> None:
    pytest.importorskip("scipy.special.tests")
    passed, _ = scipys_own.passes(__file__, tmp_path)
    assert passed >= 17


if __name__ == "__main__":
    scipys_own.main(
        Ours(), "-k", "TestSoftmax or TestLogSoftmax",
        "--pyargs", "scipy.special.tests.test_logsumexp",
    )  # fmt: skip
