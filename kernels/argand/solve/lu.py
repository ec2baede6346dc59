"""LU factorization with partial pivoting, in place, of NumPy and CuPy arrays alike.

Columns are halved down to panels, and the updates are products as deep as the halves are wide
(Toledo, SIAM J. Matrix Anal. Appl. 18, 1997). A right-looking factorization by panels of w columns
has the same flops, but its updates are w deep: every one writes the rest of the matrix again.

The exchanges of a panel are applied to all other columns at once, which reads and writes 2 n^2
elements in all, as applying those of each half would, but from and to memory only once. On a GPU
nothing of this waits for the host: pivots stay on the device, and whether a column lacked one is
checked at the end.

Costs of n = 32768, complex128, N moduli, w = 512, by flops and bytes (not measured):

| part | work | at | time |
|---|---|---|---|
| products | 4 N n^3 / 3 int8 operations | 1.4e15/s | 0.40 s at 12, 0.50 s at 15 |
| decoding C | 32 + 4 N B an element, n^2 / 4 a level, 6 levels | 4e12 B/s | 0.04 s |
| encoding both operands | 32 + 2 N B an element, n^2 / 2 a level | 4e12 B/s | 0.05 s |
| triangular solves of w rows | 2 w n^2 flops | 3e13/s | 0.04 s |
| panels | 2 w n^2 flops; n columns, one after another | 5 us a column | 0.16 s |
| panels to columns and back | 64 B of n^2 / 2 elements | 3e12 B/s | 0.01 s |
| exchanges of rows | 32 B of 2 n^2 elements | 3e12 B/s | 0.02 s |

The same right-looking updates would write 92 n^3 / (3 w) bytes: 0.53 s at w = 512.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.gemm.api import gemm
from argand.runtime.complex_types import PRECISION
from argand.solve.library import Library, singular


class Factorization:
    """The factors L and U of A, with its rows in an order.

    Updates are products of `argand.gemm`, also those of triangular systems of more than ``block``
    rows; panels and smaller systems are the library's.

    Args:
        lu: A (n, n), row-major, complex64 or complex128; overwritten by the factors.
        library: LAPACK and BLAS of the array's backend.
        precision: precision of products at least ``block`` deep, whose results have the array's
            type; shallower ones are computed in that type.
        block: smallest depth of those products.
        panel: columns that the library factors at a time.

    Raises numpy.linalg.LinAlgError where a column has no pivot other than 0.
    """

    def __init__(
        self, lu: Any, library: Library, *, precision: str, block: int, panel: int
    ) -> None:
        self._lu, self._library, self._arrays = lu, library, library.arrays
        #: Precision of the updates.
        self.precision = precision
        #: Whether the library's getrf found all of them, in complex128.
        self.as_gesv = panel >= len(lu) and lu.dtype == np.complex128
        self._block, self._panel = block, panel
        #: Row ``order[i]`` of A is row i of L U; in the memory of the arrays.
        self.order = self._arrays.arange(len(lu))
        self._without: list[tuple[int, Any]] = []
        self._columns(0, len(lu))
        self._refuse_singular()

    def solve(self, b: Any) -> Any:
        """Return x (n, r) of A x = b, column-major, in the type of the factors."""
        x = self._arrays.asfortranarray(b[self.order], self._lu.dtype)
        self._library.solve_triangular(self._lu, x, unit_lower=True)
        self._library.solve_triangular(self._lu, x, unit_lower=False)
        return x

    def _columns(self, first: int, last: int) -> None:
        """Factor these columns from row ``first`` on; bring the rows of all columns into order."""
        if last - first <= self._panel:
            self._factor_panel(first, last)
            return
        lu, middle = self._lu, self._middle(first, last)
        self._columns(first, middle)
        self._solve_lower(first, middle, lu[first:middle, middle:last])
        self._subtract(
            lu[middle:, first:middle], lu[first:middle, middle:last], lu[middle:, middle:last]
        )
        self._columns(middle, last)

    def _factor_panel(self, first: int, last: int) -> None:
        found = self._library.factor_panel(self._lu[first:, first:last])
        self._without.append((first, found.without))
        if self._arrays is np:  # a GPU's panels are still to be computed
            self._refuse_singular()
        self._library.exchange(self._lu[first:], found, first, last)
        self.order[first:] = self.order[first:][found.order]

    def _refuse_singular(self) -> None:
        """Raise LinAlgError where a panel had a column without a pivot; waits for a GPU.

        Panels are asked once, in their order.
        """
        waiting, self._without = self._without, []
        if not waiting:
            return
        numbers = self._arrays.concatenate([without for _, without in waiting]).tolist()
        for (first, _), number in zip(waiting, numbers, strict=True):
            if number:
                raise singular(first + number - 1)

    def _middle(self, first: int, last: int) -> int:
        """Return half of the panels to the left, at least one."""
        return first + -(-(last - first) // (2 * self._panel)) * self._panel

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
        """Compute c -= a b, blocks of the matrix."""
        shallow = a.shape[1] < self._block
        precision = PRECISION[str(c.dtype)] if shallow else self.precision
        gemm(a, b, c, alpha=-1, beta=1, precision=precision, out=c)
