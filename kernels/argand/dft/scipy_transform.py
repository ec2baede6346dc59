"""SciPy's own transforms, without the dispatch and the checks that take longer than a short one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from argand.device import available_cores
from argand.rounding import Array

if TYPE_CHECKING:
    from argand.dft.problem import DftProblem

SHARED = 1 << 20
"""Bytes from which two threads gain more than it takes to wake them, 50 us, of a virtual machine up
to 100. One takes 150 to 300 us for as many, of lengths with small factors."""

_thread = threading.local()


def is_shared(x: Array) -> bool:
    """Return whether transforms of an array are shared among threads."""
    return x.nbytes >= SHARED and available_cores() > 1


@cache
def legacy() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return scipy.fftpack's fft and ifft, which call what scipy.fft calls, without its dispatch.

    They are imported by the first call: `import argand` does without them.
    """
    from scipy import fftpack

    return fftpack.fft, fftpack.ifft


def by_scipy(
    x: Any, n: int | None, axis: int, norm: Any, overwrite: bool, workers: int | None,
    inverse: bool,
) -> Any:  # fmt: skip
    """Return SciPy's own transform, whichever backend the caller may have set, even ours.

    It serves calls with a norm or with threads, which scipy.fftpack does not take. SciPy's context
    belongs to the thread that made it, and is made once a thread.
    """
    from scipy import fft

    context = getattr(_thread, "scipy", None)
    if context is None:
        context = _thread.scipy = fft.set_backend("scipy", only=True)
    with context:
        transform = fft.ifft if inverse else fft.fft
        if workers is None and is_shared(x):
            workers = available_cores()
        return transform(x, n, axis, norm, overwrite, workers)


def prepared(problem: DftProblem, x: Array, n: int | None, axis: int) -> Callable[[Array], Array]:
    """Return a function that computes a problem by SciPy, of arrays of this form and type."""
    inverse, norm = problem.inverse, problem.norm
    if norm == "backward" and not is_shared(x):
        transform = legacy()[inverse]
        return lambda x: transform(x, n, axis)
    return lambda x: by_scipy(x, n, axis, norm, False, None, inverse)
