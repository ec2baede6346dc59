"""LU factorization with partial pivoting, in place, of NumPy and CuPy arrays alike.

Columns are halved down to panels, and the updates are products as deep as the halves are wide
(Toledo, SIAM J. Matrix Anal. Appl. 18, 1997). A right-looking factorization by panels of w columns
has the same flops, but its updates are w deep: every one writes the rest of the matrix again.

Costs of n = 32768, complex128, 15 moduli, w = 512, by flops and bytes (not measured):

| part | work | at | time |
|---|---|---|---|
| products | 60 n^3 / 3 int8 operations | 1.4e15/s | 0.50 s |
| decoding C | 92 B an element, n^2 / 4 a level, 6 levels | 4e12 B/s | 0.04 s |
| encoding both operands | 62 B an element, n^2 / 2 a level | 4e12 B/s | 0.05 s |
| triangular solves of w rows | 2 w n^2 flops | 3e13/s | 0.04 s |
| panels | 2 w n^2 flops; n columns, one after another | 10 us a column | 0.33 s |
| exchanges of rows | 64 B of 2 n^2 elements | 3e12 B/s | 0.05 s |

The same right-looking updates would write 92 n^3 / (3 w) bytes: 0.53 s at w = 512.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.api import gemm
from argand.solve.library import Library, Pivots

_PRECISIONS = {"complex64": "fp32", "complex128": "fp64"}
Order = npt.NDArray[np.int64]


class Factorization:
    """The factors of A, whose row ``order[i]`` is row i of L U.

    Updates are products of `argand.gemm`, also those of triangular systems of more than ``block``
    rows; panels and smaller systems are the library's.

    Args:
        lu: A (n, n), row-major, complex64 or complex128; overwritten by the factors.
        library: LAPACK and BLAS of the array's backend.
        precision: of products at least ``block`` deep, whose results have the array's type;
            shallower ones are computed in that type.
        block: least depth of those products.
        panel: columns that the library factors at a time.

    Raises numpy.linalg.LinAlgError where a column has no pivot other than 0.
    """

    def __init__(
        self, lu: Any, library: Library, *, precision: str, block: int, panel: int
    ) -> None:
        self._lu, self._library, self._arrays = lu, library, library.arrays
        self._precision, self._block, self._panel = precision, block, panel
        self.order = self._columns(0, len(lu))

    def solve(self, b: Any) -> Any:
        """Return x (n, r) of A x = b, column-major, in the type of the factors."""
        x = self._arrays.asfortranarray(b[self._arrays.asarray(self.order)], self._lu.dtype)
        self._library.solve_triangular(self._lu, x, unit_lower=True)
        self._library.solve_triangular(self._lu, x, unit_lower=False)
        return x

    def _columns(self, first: int, last: int) -> Order:
        """Factor these columns from row ``first`` on; return the order of those rows."""
        if last - first <= self._panel:
            return self._factor_panel(first, last)
        lu, middle = self._lu, self._middle(first, last)
        order = self._columns(first, middle)
        self._permute(first, order, slice(middle, last))
        self._solve_lower(first, middle, lu[first:middle, middle:last])
        self._subtract(
            lu[middle:, first:middle], lu[first:middle, middle:last], lu[middle:, middle:last]
        )
        below = self._columns(middle, last)
        self._permute(middle, below, slice(first, middle))
        order[middle - first :] = order[middle - first :][below]
        return order

    def _factor_panel(self, first: int, last: int) -> Order:
        pivots, without = self._library.factor_panel(self._lu[first:, first:last])
        if without:
            raise np.linalg.LinAlgError(
                f"the matrix is singular: after elimination column {first + without - 1} is 0 from "
                "its diagonal on"
            )
        return order_of(pivots, len(self._lu) - first)

    def _middle(self, first: int, last: int) -> int:
        """Half of the panels to the left, at least one."""
        return first + -(-(last - first) // (2 * self._panel)) * self._panel

    def _permute(self, first: int, order: Order, columns: slice) -> None:
        """Bring rows from ``first`` on into this order; only those that move are touched."""
        (moved,) = np.nonzero(order != np.arange(len(order)))
        if not moved.size:
            return
        rows = self._lu[first:, columns]
        to, source = (self._arrays.asarray(x) for x in (moved, order[moved]))
        rows[to] = rows[source]

    def _solve_lower(self, first: int, last: int, b: Any) -> None:
        """Overwrite b by the solution of L x = b for the diagonal block of these rows."""
        if last - first <= max(self._block, self._panel):
            self._library.solve_triangular(self._lu[first:last, first:last], b, unit_lower=True)
            return
        middle = self._middle(first, last)
        top, bottom = b[: middle - first], b[middle - first :]
        self._solve_lower(first, middle, top)
        self._subtract(self._lu[middle:last, first:middle], top, bottom)
        self._solve_lower(middle, last, bottom)

    def _subtract(self, a: Any, b: Any, c: Any) -> None:
        """Compute c -= a b, blocks of the matrix; a lies in the rows of c."""
        # By their bounds in memory a and c overlap, which would cost a copy of c, the larger one.
        a = self._arrays.ascontiguousarray(a)
        shallow = a.shape[1] < self._block
        precision = _PRECISIONS[str(c.dtype)] if shallow else self._precision
        gemm(a, b, c, alpha=-1, beta=1, precision=precision, out=c)


def order_of(pivots: Pivots, rows: int) -> Order:
    """Return which row stands where after the exchanges of i and pivots[i], for i from 0 on."""
    moved: dict[int, int] = {}
    for i, pivot in enumerate(pivots.tolist()):
        moved[i], moved[pivot] = moved.get(pivot, pivot), moved.get(i, i)
    order = np.arange(rows)
    order[list(moved)] = list(moved.values())
    return order
