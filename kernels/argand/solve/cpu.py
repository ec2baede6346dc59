"""LAPACK and BLAS on the CPU, through SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.runtime.cpu.scipy_routines import blas, lapack
from argand.solve.library import Exchanges, singular


class CpuLibrary:
    """See `argand.solve.library.Library`.

    SciPy is imported by what calls it: that takes as long as all else that ``import argand`` does.
    """

    arrays: Any = np

    def factor_panel(self, x: Any) -> Exchanges:
        """Overwrite x by its factors (LAPACK's getrf)."""
        x[...], pivots, info = lapack("getrf", x.dtype)(x)
        order = order_of(pivots, len(x))
        (moved,) = np.nonzero(order != np.arange(len(order)))
        return Exchanges(order, np.stack([moved, order[moved]], axis=1), np.array([info]))

    def exchange(self, rows: Any, exchanges: Exchanges, first: int, last: int) -> None:
        """Bring rows into the order, except in the columns [first, last)."""
        to, source = exchanges.moves.T
        for columns in (rows[:, :first], rows[:, last:]):
            columns[to] = columns[source]

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b by the solution of t x = b (BLAS's trsm)."""
        trsm = blas("trsm", t.dtype)
        # The transpose of the whole matrix is column-major, so SciPy does not copy it.
        b[...] = trsm(1, t.T, b, trans_a=1, lower=not unit_lower, diag=unit_lower)

    def residual(self, a: Any, x: Any, b: Any) -> Any:
        """See `Library`. SciPy's BLAS computes it, by gemm, or by gemv for one column.

        NumPy has another BLAS with threads of its own. The threads of either spin for milliseconds
        after a call, on the cores that the other needs for its next one.
        """
        matrix, trans = (a, 0) if a.flags.f_contiguous else (a.T, 1)
        if x.shape[1] == 1:
            return blas("gemv", "complex128")(-1, matrix, x[:, 0], 1, b[:, 0], trans=trans)[:, None]
        return blas("gemm", "complex128")(-1, matrix, x, 1, b, trans_a=trans)


def order_of(pivots: npt.NDArray[np.integer[Any]], rows: int) -> npt.NDArray[np.int64]:
    """Return the order of rows after exchanging i and pivots[i], for i from 0 on."""
    moved: dict[int, int] = {}
    for i, pivot in enumerate(pivots.tolist()):
        moved[i], moved[pivot] = moved.get(pivot, pivot), moved.get(i, i)
    order = np.arange(rows)
    order[list(moved)] = list(moved.values())
    return order


class WholeFactors:
    """The factors of a matrix that LAPACK factors whole (getrf), as `argand.solve.lu` has them."""

    def __init__(self, lu: Any, pivots: Any, precision: str) -> None:
        self._lu, self._pivots, self.precision = lu, pivots, precision
        self._getrs = lapack("getrs", lu.dtype)
        self.as_gesv = lu.dtype == np.complex128

    @classmethod
    def of(cls, a: Any, working: str, precision: str) -> WholeFactors:
        """Factor a matrix.

        Raises numpy.linalg.LinAlgError where a column has no pivot other than 0.
        """
        lu, pivots, info = lapack("getrf", working)(a)
        if info > 0:
            raise singular(info - 1)
        return cls(lu, pivots, precision)

    def solve(self, b: Any) -> Any:
        """Return x (n, r) of A x = b, column-major, in the type of the factors."""
        x, _ = self._getrs(self._lu, self._pivots, b)
        return x
