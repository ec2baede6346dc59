"""Operands of Hermitian products, and what their results have to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS, herk

from workflow.accuracy import bounds

Array = npt.NDArray[Any]
OPS = ("N", "T", "C")


def oriented(a: Array, op: str) -> Array:
    if op == "N":
        return a
    a = a.swapaxes(-1, -2)
    return a.conj() if op == "C" else a


def expected(a: Array, op: str = "N") -> tuple[Array, Array]:
    """op(a) op(a)^H in fp64 and the product of the moduli."""
    x = oriented(a, op).astype(complex)
    return x @ x.conj().swapaxes(-1, -2), abs(x) @ abs(x).swapaxes(-1, -2)


def packed(x: Array) -> Array:
    """The lower triangle row by row."""
    return (
        np.stack([x[..., i, j] for i in range(x.shape[-1]) for j in range(i + 1)], axis=-1)
        if (x.shape[-1])
        else np.zeros((*x.shape[:-2], 0), x.dtype)
    )


def assert_hermitian(found: Array, where: Any = ...) -> None:
    """Matrices are Hermitian to the bit, elements ``where`` says, and their diagonals real."""
    np.testing.assert_array_equal(found[where], found.conj().swapaxes(-1, -2)[where])
    diagonal = np.diagonal(found, axis1=-2, axis2=-1)
    np.testing.assert_array_equal(diagonal.imag, 0)


def tolerance(precision: str, k: int, backend: str = "cpu", **scalars: float) -> float:
    """The worst-case bound of an element, over |alpha| |A| |A|^T + |beta| |C|.

    Beside it stands what a scaled precision may lose of a line of normal numbers: less than one
    part in 2^20.
    """
    row = PRECISIONS[precision]
    found = bounds.product_bound(row, k, backend, **scalars)
    return float(found + (2.0**-20 * row.scaled))


def poisoned(cp: Any, shape: tuple[int, ...], dtype: str = "complex64") -> Any:
    return cp.full(shape, complex(np.nan, np.nan), dtype)


def check(cp: Any, a: Array, precision: str, family: Any, op: Any = "N", **scalars: Any) -> None:
    row = PRECISIONS[precision]
    value, size = expected(a, op)
    out = poisoned(cp, value.shape, row.output)
    given = cp.asarray(a)
    assert herk(given, op=op, precision=precision, kernels=family, out=out, **scalars) is out
    found = out.get()
    assert_hermitian(found)
    alpha = scalars.get("alpha", 1.0)
    limit = 2**0.5 * tolerance(precision, oriented(a, op).shape[-1], "cuda", alpha=alpha)
    error = abs(found - alpha * value)
    assert (error <= limit * abs(alpha) * size).all()
    triangle = herk(given, op=op, precision=precision, kernels=family, form="triangle", **scalars)
    np.testing.assert_array_equal(triangle.get(), packed(found))
