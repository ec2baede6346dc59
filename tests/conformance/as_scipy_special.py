"""A plugin of pytest: softmax and log_softmax by argand while SciPy's own tests of them run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import argand
import numpy as np
import pytest

_calls = 0


def _over_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Ours over any axis, several or all, at fp64: they are brought last and back."""

    def over(x: Any, axis: Any = None) -> Any:
        global _calls
        _calls += 1
        x = np.asarray(x)
        axes = tuple(range(x.ndim)) if axis is None else axis
        axes = tuple(n % x.ndim for n in (axes if isinstance(axes, tuple) else (axes,)))
        kept = tuple(n for n in range(x.ndim) if n not in axes)
        turned = x.transpose(*kept, *axes)
        rows = turned.reshape(*(x.shape[n] for n in kept), -1)
        found = function(rows, precision="fp64").reshape(turned.shape)
        return found.transpose(np.argsort((*kept, *axes)))[()]  # SciPy wants scalars of scalars

    return over


def pytest_runtest_setup(item: Any) -> None:
    """Give SciPy's test module ours."""
    item.module.softmax = _over_axes(argand.softmax)
    item.module.log_softmax = _over_axes(argand.log_softmax)


@pytest.hookimpl
def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"calls: {_calls} argand")
