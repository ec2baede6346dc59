"""Checks of signals, windows and results, for filter banks and spectral estimates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from argand.checks import (
    all_on_gpu,
    as_array,
    as_flag,
    check_contiguous,
    check_numbers,
    check_out,
    refuse_masked,
)
from argand.device import array_module, is_cuda_array
from argand.gemm.operands import on_gpu
from argand.gemm.pairs import Pairs

Array = np.ndarray[Any, np.dtype[np.float64]]


def is_real(x: Any) -> bool:
    """Return whether a signal is real. Raises TypeError for a type that holds no numbers."""
    if isinstance(x, Pairs):
        return False
    check_numbers("x", x)
    return bool(x.dtype.kind != "c")


def are_conjugate(conjugate: Any, *, real: bool) -> bool:
    """Return whether a call computes with other numbers than its samples: their conjugates.

    Real ones are their own. Raises TypeError for a ``conjugate`` that is neither true nor false.
    """
    return as_flag(conjugate, "conjugate") and not real


def check_signal(x: Any, out: Any) -> None:
    """Raise ValueError for a signal without a time axis, TypeError where ``out`` is elsewhere."""
    if not x.ndim:
        raise ValueError("x must have at least one axis, time, got shape ()")
    if out is not None:
        all_on_gpu({"x": on_gpu(x), "out": on_gpu(out)})


def check_written(out: Any, shape: tuple[int, ...], dtype: str) -> None:
    """Raise ValueError where ``out`` is given and is not C-contiguous, of this shape and type."""
    check_out(out, shape, dtype)
    check_contiguous("out", out)


def written_array(x: Any, out: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return the array that a call writes: ``out``, or a new one on the current device.

    Raises ValueError where ``out`` overlaps the signal ``x``.
    """
    array = x.array if isinstance(x, Pairs) else x
    if out is None:
        return array_module(array).empty(shape, dtype)
    if out.size and array_module(array).may_share_memory(array, out):
        raise ValueError("out must not overlap x")
    return out


def rows_of(x: Any, leading: int) -> Any:
    """Return a NumPy signal (..., time) with ``leading`` axes before time as rows (rows, time).

    `Pairs` of integers and of fp16 become their parts (rows, time, 2).
    """
    if isinstance(x, Pairs):
        x = x.to_complex64() if x.format == "bf16" else x.array
    return x.reshape(math.prod(x.shape[:leading]), *x.shape[leading:])


def is_named(window: Any) -> bool:
    """Return whether a window is a name of scipy.signal's, or (name, parameter...)."""
    return isinstance(window, str) or (
        isinstance(window, tuple) and bool(window) and isinstance(window[0], str)
    )


def given_coefficients(window: Any, count: int, meaning: str) -> Array:
    """Return a window that is ``count`` numbers, float64 (count,), from any device.

    ``meaning`` says in messages where their number comes from. Raises TypeError for numbers that
    are not real or are masked, ValueError for another number of them or one that is not finite.
    """
    refuse_masked("window", window)
    found = window.get() if is_cuda_array(window) else as_array(window, "window")
    if found.dtype.kind not in "fiu":
        raise TypeError(f"window must hold real numbers, got {found.dtype}")
    if found.shape != (count,):
        raise ValueError(
            f"window must be a name or {count} coefficients, {meaning}, got shape {found.shape}"
        )
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError("window must be finite")
    return np.asarray(found)


def designed_coefficients(window: Any, design: Callable[[], Any], otherwise: str) -> Array:
    """Return the coefficients that ``design`` computes from a window of SciPy, read-only float64.

    Raises ValueError for a window that SciPy does not know, and for coefficients that are not
    finite; ``otherwise`` ends the message of the latter.
    """
    try:
        found = np.asarray(design(), np.float64)
    except Exception as error:  # SciPy checks few parameters: some fail wherever they are used
        raise ValueError(
            f"window must be a window of scipy.signal, got {window!r}: {error}"
        ) from None
    if not np.isfinite(found).all():
        raise ValueError(f"window {window!r} {otherwise}")
    found.flags.writeable = False
    return found
