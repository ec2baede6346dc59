"""Tests whether numbers of Hermitian systems on the CPU are finite, in few steps."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from argand.runtime.cpu.threads import ONE_CORE_DOT


def is_finite(x: Any) -> bool:
    """Return whether all numbers are finite; few numbers are not where their squares overflow.

    BLAS needs no buffer and warns of nothing. For many numbers NumPy's BLAS takes threads, which
    then spin for milliseconds on the cores that SciPy's LAPACK, with its own threads, needs next.
    """
    if x.size <= ONE_CORE_DOT:
        return cmath.isfinite(np.vdot(x, x))
    return bool(np.isfinite(x).all())


def has_finite_pivots(r: Any) -> bool:
    """Return whether the squares of diagonals are finite: an infinite pivot leaves a finite x.

    It takes less time to test all of few numbers first. They may fail that test although the
    diagonal is finite, because the triangle that LAPACK does not read may hold anything.
    """
    few = r.size <= ONE_CORE_DOT and r.flags.c_contiguous
    return (few and is_finite(r)) or is_finite(r.diagonal(0, -2, -1))
