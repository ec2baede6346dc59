"""Hermitian matrices from their lower triangles on the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.herk.problem import HerkProblem
from argand.runtime.cpu.scratch import with_conjugates
from argand.runtime.cpu.threads import ONE_CORE_DOT

Array = npt.NDArray[Any]
_MANY = 48
"""Matrices from which a step of two rows of all takes less time than a mask of each."""
_HALVED, _HALVED_VALUES = 64, 1 << 16
"""Rows, and numbers of all matrices, from which the quarter above both diagonal ones is apart."""
_BYTES_FOR_K = 1 << 16
"""Bytes of results for each k from which to add the operands' squares takes less time than to clear
the diagonals, which lie apart."""
_FEW, _MIRRORED = 256, 96
"""Rows of a triangle up to which it is mirrored at once, and those of more that are at a time."""


def is_few(n: int) -> bool:
    """Return whether matrices of n rows are mirrored at once."""
    return n <= _FEW


def mirror(square: Array) -> None:
    """Make matrices Hermitian by their lower triangles."""
    n = square.shape[-1]
    _real_diagonals(square)
    side = n if is_few(n) else _MIRRORED
    for start in range(0, n, side):
        rows = slice(start, min(start + side, n))
        diagonal = square[..., rows, rows]
        np.copyto(
            diagonal, np.conjugate(diagonal.swapaxes(-1, -2)), where=upper_mask(diagonal.shape[-1])
        )
        if start:
            beside = square[..., rows, :start].conj()
            square[..., :start, rows] = beside.swapaxes(-1, -2)


def _fill(conjugates: Array, square: Array, where: Array) -> None:
    """Write the conjugates of what is below matrices' diagonals where they are above it.

    What is all above it takes less time without a mask, and rows of many matrices do, two at a
    time from the second one's diagonal on.
    """
    n, across = square.shape[-1], conjugates.swapaxes(-1, -2)
    if _is_by_rows(square):
        for row in range(0, n - 1, 2):
            square[..., row : row + 2, row + 1 :] = across[..., row : row + 2, row + 1 :]
        return
    if n <= _HALVED or square.size < _HALVED_VALUES:
        np.copyto(square, across, where=where)
        return
    half = n // 2
    square[..., :half, half:] = across[..., :half, half:]
    for rows in (slice(0, half), slice(half, n)):
        np.copyto(square[..., rows, rows], across[..., rows, rows], where=where[rows, rows])


def _is_by_rows(square: Array) -> bool:
    n = square.shape[-1]
    return bool(n <= _HALVED and square.size >= _MANY * n * n)


def _real_diagonals(square: Array) -> None:
    """Make the diagonals of matrices real."""
    if square.flags.c_contiguous:
        n = square.shape[-1]
        square.reshape(-1, n * n)[:, :: n + 1].imag = 0
    else:
        np.einsum("...ii->...i", square.imag)[...] = 0


def mirrored(problem: HerkProblem, start: int = 0) -> Callable[[Array, Array], None]:
    """Return `mirror` of the products of operands, in fewer steps where they have few rows.

    Both are contiguous. The first ``start`` rows and columns are Hermitian, but for what is not
    finite on their diagonals.
    """
    n = problem.n
    if not (start or is_few(n)):
        return lambda _, square: mirror(square)
    view, upper, bytes_of_few = np.ndarray, upper_mask(n), problem.k * _BYTES_FOR_K
    real = np.zeros((), problem.dtype).real.dtype
    part, values = real.itemsize, n * n
    strides = (2 * part * values, 2 * part * (n + 1))

    def run(a: Array, square: Array) -> None:
        if not start:
            with_conjugates(_fill, square, upper)
        elif start < n:
            _fill_from(start, square)
        if not start or square.nbytes < bytes_of_few or not _has_finite_squares(a):
            # The imaginary parts of the diagonals.
            view((square.size // values, n), real, square, part, strides).fill(0)

    return run


def _fill_from(start: int, square: Array) -> None:
    """Write the conjugates of the rows from ``start`` on where they are above the diagonal.

    There are few, so that each takes less time by itself than all do by a mask.
    """
    conjugates = np.conjugate(square[..., start:, :])
    for column in range(start, square.shape[-1]):
        square[..., :column, column] = conjugates[..., column - start, :column]
        square[..., column, column].imag = 0


def _has_finite_squares(a: Array) -> bool:
    """Return whether the squares of all numbers have a finite sum, and so products of any two.

    BLAS adds so few at a time on one core.
    """
    numbers, vdot = a.reshape(-1), np.vdot
    for first in range(0, numbers.size, ONE_CORE_DOT):
        some = numbers[first : first + ONE_CORE_DOT]
        if not vdot(some, some).real < math.inf:
            return False
    return True


@lru_cache(maxsize=128)
def upper_mask(n: int) -> npt.NDArray[np.bool_]:
    """Return where an n by n matrix is above its diagonal."""
    return np.ascontiguousarray(np.tri(n, k=-1, dtype=bool).T)
