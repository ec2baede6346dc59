"""The check that covariances of an image are Hermitian, on a CPU or a GPU."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from argand.image.blocks import BLOCK_VALUES
from argand.image.problem import HERMITIAN, as_complex
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import ONE_CORE_DOT

_COMPARED_VALUES = 1 << 15
"""Numbers of covariances that are compared with their conjugate transposes at a time: 256 KiB of
complex64, which stay in a core's L2 (docs/experiments/2026-11-28-small-calls-on-a-cpu.md)."""
_FEW_ENTRIES = 16
"""Most entries whose least Python finds."""
_MIN_ENTRY = 2.0**-40
"""Entry of a covariance from which `is_small` may return true."""


def require_hermitian(r: Any, arrays: Any) -> None:
    """Raise ValueError where a finite covariance differs from its conjugate transpose.

    It may by `HERMITIAN` of its largest entry, for what rounding leaves.
    """
    if not r.size or (arrays is np and quietly(_are_surely_close, r)):
        return
    channels = r.shape[-3]
    step = max(1, BLOCK_VALUES[arrays.__name__] * channels // r.size)
    for first in range(0, channels, step):
        some = as_complex(r[..., first : first + step, :, :])
        with np.errstate(all="ignore"):
            if arrays is np and _is_close(some):
                continue
            bad = _is_apart(some, arrays)
        if bad.any():
            channel = int(bad.reshape(-1, bad.shape[-1]).any(axis=0).argmax())
            raise not_hermitian(first + channel)


def _are_surely_close(r: Any) -> bool:
    """Return whether NumPy covariances are Hermitian by what takes least time to tell.

    It checks as many at a time as stay in a core's cache.
    """
    n = r.shape[-1]
    few = n * (n + 1) // 2 <= ONE_CORE_DOT and (r.flags.c_contiguous or r.size <= _COMPARED_VALUES)
    if r.dtype.kind != "c" or not few:
        return False
    together = max(1, _COMPARED_VALUES // (n * n))
    flat, (lower, upper) = r.reshape(-1, n * n), _triangles(n)
    for first in range(0, len(flat), together):
        some = flat[first : first + together]
        apart = some.take(upper, 1)
        np.conjugate(apart, apart)
        apart -= some.take(lower, 1)
        if not is_small(apart, some[:, 0]):
            return False
    return True


@lru_cache(maxsize=64)
def _triangles(n: int) -> tuple[Any, Any]:
    """Return the flat indices of the lower triangle of an (n, n) matrix and of its transpose."""
    rows, columns = np.tril_indices(n)
    return rows * n + columns, columns * n + rows


def is_small(apart: Any, entries: Any) -> bool:
    """Return whether the norm of few complex numbers is small beside entries, one a matrix.

    Small is up to half of the difference from a Hermitian matrix that the least entry allows.
    False also where squares may underflow or overflow.
    """
    # Python finds the least of few numbers in less time than NumPy.
    parts = entries.real
    few = parts.size <= _FEW_ENTRIES
    least = min(parts.tolist()) if few else float(np.minimum.reduce(parts))
    norm = 0.5 * HERMITIAN * least
    allowed = norm * norm  # infinite, where a power would be an OverflowError
    return least >= _MIN_ENTRY and allowed < math.inf and bool(_square(apart) <= allowed)


def _square(x: Any) -> float:
    """Return the squared norm of complex numbers; BLAS adds few of them up on one core."""
    if x.size <= ONE_CORE_DOT:
        return float(np.vdot(x, x).real)
    return float(np.add.reduce(np.vecdot(x, x).real, None))


def _is_close(r: Any) -> bool:
    """Return whether no NumPy covariance is apart; False where it takes `_is_apart` to tell.

    It compares the largest part of all differences with each matrix's largest part.
    """
    apart = np.abs(_parts(r - r.swapaxes(-1, -2).conj())).max()
    if apart == 0:
        return True
    largest = np.abs(_parts(r)).max(axis=(-1, -2)).min()
    return bool(apart <= math.sqrt(0.5) * HERMITIAN * largest)


def _parts(x: Any) -> Any:
    """Return complex numbers as neighbouring real and imaginary parts."""
    return np.ascontiguousarray(x).view(x.real.dtype)


def _is_apart(r: Any, arrays: Any) -> Any:
    """Return whether each covariance differs from its conjugate transpose by more than it may."""
    apart = r - r.swapaxes(-1, -2).conj()
    # A modulus is at most sqrt(2) times its larger part, and takes longer.
    parts = [arrays.maximum(_largest(x.real, arrays), _largest(x.imag, arrays)) for x in (apart, r)]
    sure = math.sqrt(0.5) * HERMITIAN * parts[1]
    if not (arrays.isfinite(parts[1]) & ~(parts[0] <= sure)).any():
        return arrays.zeros(r.shape[:-2], bool)
    difference, size = (_largest(x, arrays) for x in (apart, r))
    return arrays.isfinite(size) & (difference > HERMITIAN * size)


def _largest(x: Any, arrays: Any) -> Any:
    return arrays.abs(x).max(axis=(-1, -2))


def not_hermitian(channel: int) -> ValueError:
    """Return the error for a covariance that is not Hermitian."""
    return ValueError(
        f"covariances must be Hermitian, R[a, b] = conj(R[b, a]), but one of channel {channel} "
        f"differs from its conjugate transpose by more than {HERMITIAN:g} of its largest entry"
    )
