"""The truth of x x^H in fp64, by SciPy: half the operations of a product of two matrices."""

from __future__ import annotations

import numpy as np

from workflow.accuracy.references import (
    FLOP_BUDGET,
    MAX_ELEMENTS,
    Array,
    ProductReference,
    product_reference,
)
from workflow.threads import for_each


def hermitian_reference(
    x: Array, *, seed: int = 0, flop_budget: float = FLOP_BUDGET
) -> ProductReference:
    """Return the reference of x x^H for x (..., n, k), by scipy.linalg.blas.zherk and dsyrk.

    Full where 4 batch n (n + 1) k is within ``flop_budget`` (and the result within 2^24 elements),
    else `product_reference` of sampled rows.
    """
    x = np.asarray(x)
    batch_shape, (n, k) = x.shape[:-2], x.shape[-2:]
    batch = int(np.prod(batch_shape, dtype=np.int64))
    if not k or 4 * batch * n * (n + 1) * k > flop_budget or batch * n * n > MAX_ELEMENTS:
        right = np.conj(np.swapaxes(x, -1, -2))
        return product_reference(x, right, seed=seed, flop_budget=flop_budget)
    values, magnitude = np.empty((batch, n, n), complex), np.empty((batch, n, n))
    matrices = x.reshape(batch, n, k)

    def fill(index: int) -> None:
        wide = matrices[index].astype(complex)
        values[index], magnitude[index] = hermitian_square(wide), _symmetric_square(np.abs(wide))

    with np.errstate(all="ignore"):
        for_each(fill, range(batch))
    return ProductReference(
        a=x, b=np.conj(np.swapaxes(x, -1, -2)), c=None, alpha=1, beta=0, batch_shape=batch_shape,
        rows=np.arange(batch * n), values=values.reshape(-1, n), magnitude=magnitude.reshape(-1, n),
        sampled=False, seed=seed,
    )  # fmt: skip


def hermitian_square(x: Array) -> Array:
    """Return X X^H of a matrix (n, k) of complex128."""
    from scipy.linalg.blas import zherk

    # BLAS is column-major: of X^T it computes the upper triangle of conj(X X^H), which in memory is
    # the lower one of X X^H; nothing is transposed.
    found = np.asarray(zherk(1.0, x.T, trans=2).T)
    above = np.triu_indices(len(x), 1)
    found[above] = np.conj(found.T[above])
    return found


def _symmetric_square(x: Array) -> Array:
    """Return X X^T of a matrix (n, k) of float64."""
    from scipy.linalg.blas import dsyrk

    found = np.asarray(dsyrk(1.0, x.T, trans=1).T)
    above = np.triu_indices(len(x), 1)
    found[above] = found.T[above]
    return found
