"""A plugin of pytest: calls of argand in the place of cupyx.scipy's, for CuPy's own tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import cupy
import cupyx.scipy.fft
import cupyx.scipy.special
import numpy as np
from argand import dft, log_softmax, softmax

_calls: Counter[str] = Counter()


def _transform(name: str, inverse: bool) -> Callable[..., Any]:
    def call(
        x: Any, n: int | None = None, axis: int = -1, norm: str | None = None,
        overwrite_x: bool = False,
    ) -> Any:  # fmt: skip
        _calls[name] += 1
        if x.dtype.kind in "biu":  # transforms of theirs are of float64
            x = x.astype(np.float64)
        return dft(x, axis, n=n, inverse=inverse, norm="backward" if norm is None else norm)

    return call


def _reduction(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call with SciPy's types, and its default of an axis, which is all of them.

    Complex numbers, which ours takes by their power alone, are left to CuPy, and so are logarithms
    of 16 bits: SciPy rounds after each operation, ours once.
    """

    def call(x: Any, axis: int | None = None) -> Any:
        kind = np.exp(np.zeros((), x.dtype)).dtype
        if kind.kind == "c" or (kind == np.float16 and ours is log_softmax):
            return theirs(x, axis)
        _calls[ours.__name__] += 1
        how = {"precision": "fp64" if kind == np.float64 else "fp32", "output": _NAMES[kind.name]}
        if axis is None:
            return ours(x.reshape(-1), **how).reshape(x.shape)
        # Rows that are not the last axis lie in another order, which they hold to.
        return cupy.ascontiguousarray(ours(x, axis, **how))

    return call


_NAMES = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}


def pytest_configure() -> None:
    """Put ours in place."""
    cupyx.scipy.fft.fft = _transform("fft", False)
    cupyx.scipy.fft.ifft = _transform("ifft", True)
    special = cupyx.scipy.special
    for ours in (softmax, log_softmax):
        name = ours.__name__
        setattr(special, name, _reduction(ours, getattr(special, name)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how often ours were called."""
    terminalreporter.write_line("calls: " + ", ".join(f"{n} {name}" for name, n in _calls.items()))
