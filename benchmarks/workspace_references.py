"""Results in fp64 of `benchmarks.workspace`, to the bounds of docs/verification.md."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Protocol

from argand.precision import any_precision

from workflow.accuracy.bounds import product_bound
from workflow.accuracy.underflow import underflow

EXACT = "exact"
"""The precision of sums of integers, rounded once to the type of the result."""


class Reference(Protocol):
    """The results of a problem in fp64."""

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether a result is within the bound of its precision."""


class Products:
    """The product of two matrices, computed once, when a result is first compared."""

    def __init__(self, cupy: Any, a: Any, b: Any) -> None:
        self._cupy, self._a, self._b = cupy, a, b

    @cached_property
    def _exact(self) -> Any:
        return self._a.astype("complex128") @ self._b.astype("complex128")

    @cached_property
    def _size(self) -> Any:
        """Return |A| |B|, which bounds the terms that each element adds up."""
        return abs(self._a).astype("float64") @ abs(self._b).astype("float64")

    @cached_property
    def _largest(self) -> Any:
        """Return the factor of `underflow` in the bound of each element.

        A component of a scaled line loses up to that part of the line's largest, in each of two
        operands, and twice for products of terms that are not kept.
        """
        largest_a = abs(_components(self._a)).max(axis=(1, 2))
        largest_b = abs(_components(self._b)).max(axis=(0, 2))
        sums_a = abs(self._a).sum(axis=1, dtype="float64")
        sums_b = abs(self._b).sum(axis=0, dtype="float64")
        outer = self._cupy.outer
        return 2 * 2**0.5 * (outer(largest_a, sums_b) + outer(sums_a, largest_b))

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether each part of each element is within its bound; sums of integers are it."""
        if precision == EXACT:
            return bool((out == self._exact.astype(out.dtype)).all())
        row, k = any_precision(precision), self._a.shape[1]
        lost = underflow(row, "cuda", k).of_largest
        allowed = product_bound(row, k, "cuda") * self._size + lost * self._largest
        error = abs(_components(out - self._exact)).max(axis=2)
        return bool((error <= allowed).all())


class HermitianProducts(Products):
    """The product of a matrix and its conjugate transpose; a triangle is the lower one by rows."""

    def __init__(self, cupy: Any, a: Any) -> None:
        super().__init__(cupy, a, cupy.ascontiguousarray(a.conj().T))

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether each part of each element is within its bound, Hermitian and real."""
        cupy, n = self._cupy, self._a.shape[0]
        if out.ndim == 1:
            rows, columns = cupy.tril_indices(n)
            whole = cupy.empty((n, n), out.dtype)
            whole[columns, rows] = out.conj()
            whole[rows, columns] = out
            out = whole
        return bool((out == out.conj().T).all()) and super().holds(out, precision)


class Transforms:
    """The transforms of rows, computed once, when a result is first compared."""

    def __init__(self, cupy: Any, x: Any, bound: float) -> None:
        self._cupy, self._x, self._bound = cupy, x, bound

    @cached_property
    def _exact(self) -> Any:
        return self._cupy.fft.fft(self._x.astype("complex128"))

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether each row is within the bound, in norm."""
        norm = partial(self._cupy.linalg.norm, axis=1)
        return bool((norm(out - self._exact) <= self._bound * norm(self._exact)).all())


def _components(x: Any) -> Any:
    """Return real and imaginary parts, in an axis of their own."""
    return x.view(x.real.dtype).reshape(*x.shape, 2)
