"""A probe of the number of rows of Hermitian products that BLAS makes Hermitian to the bit.

Where BLAS computes element (i, j) by the same steps as (j, i), both have the same bits but for the
sign of the imaginary part. No library promises that, so it is seen by products of random numbers of
the same shape.

What is relied on is that these show the steps of every other product: that OpenBLAS chooses an
element's steps by its place, by the shape, the transposes and the strides of operands, by its
kernels and its number of threads, and not by numbers or addresses. It does, because it packs both
operands of a product of matrices, whose numbers it does not compare, and because its kernels of dot
products read any address alike; those that do not (of SSE) are seen by rows that begin at
different addresses. All these are the same here: operands are contiguous and the shape is, kernels
are chosen as NumPy is imported, and OpenBLAS takes one core for the products: they are so small, or
`one_core` tells it to, whatever its number of threads is otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.gemm.operands import Op

Array = npt.NDArray[Any]
_MIN_MATRICES = 8
"""Fewest products that are compared. Sums of two terms by other steps have other bits in two of
five elements, longer ones in more, and by fused steps hardly a diagonal is real: 64 of one pair of
rows miss them once in 10^14, and products of more rows have as many pairs in each column."""
_MAX_MATRICES = 64
"""Most products that are compared."""
_ROWS = 512
"""Rows, those of all products together, up to which more than the fewest are compared."""
_NUMBERS = 1 << 16
"""Numbers of all operands together up to which more than the fewest products are compared."""


def rows_seen(
    steps: Callable[[Array, Array], Any], n: int, k: int, op: Op, dtype: str, *, addresses: int = 1
) -> int:
    """Return the number of first rows and columns of products that ``steps`` make Hermitian.

    ``steps`` write products (..., n, n) of contiguous operands, (..., n, k) after their op. A share
    of the operands begins at each of 1 or 2 addresses, which are a part of a number apart.
    """
    matrices = min(_MAX_MATRICES, -(-_ROWS // n), _NUMBERS // (n * k))
    matrices = max(_MIN_MATRICES, matrices) // addresses
    shape = (matrices, n, k) if op == "N" else (matrices, k, n)
    real, numbers = np.float32 if dtype == "complex64" else np.float64, 2 * matrices * n * k
    parts = _random(real)
    if numbers >= parts.size:
        parts = np.resize(parts, numbers + 1)  # an odd period: no matrix comes again
    found, apart = np.empty((matrices, n, n), dtype), np.zeros((n, n), bool)
    for first in range(addresses):
        steps(parts[first : first + numbers].view(dtype).reshape(shape), found)
        apart |= (found != np.conjugate(found).swapaxes(-1, -2)).any(0)
    wrong = np.tril(apart).any(1)
    return int(wrong.argmax()) if wrong.any() else n


@lru_cache(maxsize=2)
def _random(real: type[np.floating[Any]]) -> Array:
    """Return random numbers, kept: to draw them takes longer than the products."""
    return np.random.default_rng(0).standard_normal(2 * _NUMBERS + 1, real)
