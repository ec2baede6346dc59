"""The interface of a backend's library to a factorization: panels and triangular systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Exchanges:
    """The row exchanges of a panel, in the backend's memory.

    Attributes:
        order: int64 (rows,), which row stands where afterwards.
        moves: int32 (count, 2), where a row stands afterwards and where it comes from. Every row
            that moves is there, some of them twice; others may be.
        without: int32 (1,), the number, from 1 on, of the panel's first column without a pivot
            other than 0, else 0.
    """

    order: Any
    moves: Any
    without: Any


class Library(Protocol):
    """LAPACK and BLAS of a backend, on arrays of one complex type.

    ``arrays`` is NumPy or CuPy. A row-major matrix is a view whose rows are contiguous, with any
    distance between them; a column-major one is contiguous in Fortran's order. A GPU's calls are
    queued: none waits for the device.
    """

    arrays: Any

    def factor_panel(self, x: Any) -> Exchanges:
        """Overwrite x (m, w), m >= w, row-major, by its factors L and U, with partial pivoting.

        Beyond a column without a pivot the factors are useless; the order is still an order of the
        rows.
        """
        ...

    def exchange(self, rows: Any, exchanges: Exchanges, first: int, last: int) -> None:
        """Bring rows (m, n), row-major, into the order, except in the columns [first, last)."""
        ...

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b (w, columns), row-major or column-major, by the solution x of t x = b.

        Only one triangle of the row-major t (w, w) is read: the lower one with a diagonal of ones,
        or the upper one with its diagonal.
        """
        ...

    def residual(self, a: Any, x: Any, b: Any) -> Any:
        """Return b - a x of complex128, a (m, n) row-major or column-major, x (n, r), b (m, r)."""
        ...


class Factors(Protocol):
    """The factors of a matrix A.

    ``as_gesv`` is whether they are those of LAPACK's gesv, in the solution's type or in complex128.
    Its solution has the backward error that is promised unless elements grow, so it is refined only
    where its error is not accepted.
    """

    precision: str
    as_gesv: bool

    def solve(self, b: Any) -> Any:
        """Return x (n, r) of A x = b, column-major, in the type of the factors."""
        ...


def singular(column: int) -> np.linalg.LinAlgError:
    """Return the error of a matrix without a pivot in a column."""
    return np.linalg.LinAlgError(
        f"the matrix is singular: after elimination column {column} is 0 from its diagonal on"
    )
