"""The truth in fp64, by SciPy: computed once for a workload and shared by all its precisions.

Each function imports its part of SciPy when it is called: every job imports this module, and all of
SciPy together costs a fifth of a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.dft.problem import NORMS

from workflow.accuracy.coherence import sampled
from workflow.accuracy.lines import Lines, lines_of
from workflow.threads import for_each, stretches

Array = npt.NDArray[Any]

FLOP_BUDGET = 4e10
"""Flops of a product's full reference: about a second of zgemm on two cores."""
MAX_ELEMENTS = 1 << 24
"""Elements of a reference kept in memory (384 MiB with their magnitudes)."""
_BLOCK_VALUES = 1 << 16
"""Values transformed at a time: what is made of them stays in a core's cache."""
_FACTOR_VALUES = 1 << 20
"""Values of each factor of a product that are multiplied at a time: enough for BLAS."""


@dataclass(frozen=True)
class ProductReference:
    """alpha op(A) op(B) + beta C in fp64, for all rows or for a sample.

    ``a`` is (..., m, k) and ``b`` (..., k, n) after their op, ``c`` (..., m, n) or None, all as
    given. ``rows`` are indices into batch x m; ``values`` (len(rows), n) is the product there,
    ``magnitude`` |alpha| |A| |B| + |beta| |C|.
    """

    a: Array
    b: Array
    c: Array | None
    alpha: complex
    beta: complex
    batch_shape: tuple[int, ...]
    rows: npt.NDArray[np.int64]
    values: Array
    magnitude: Array
    sampled: bool
    seed: int

    @property
    def m(self) -> int:
        """Rows of one product."""
        return int(self.a.shape[-2])

    @property
    def n(self) -> int:
        """Columns of one product."""
        return int(self.b.shape[-1])

    @property
    def k(self) -> int:
        """Length of the contraction; 0 where alpha is 0 and the operands are not read."""
        return int(self.a.shape[-1]) if self.alpha != 0 else 0

    @property
    def batch(self) -> int:
        """Number of products."""
        return int(np.prod(self.batch_shape, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a result."""
        return (*self.batch_shape, self.m, self.n)

    @cached_property
    def rows_of_a(self) -> Lines:
        """Sizes and shapes of the rows of op(A), (..., m, 1)."""
        return lines_of(self.a, -1)

    @cached_property
    def columns_of_b(self) -> Lines:
        """Sizes and shapes of the columns of op(B), (..., 1, n)."""
        return lines_of(self.b, -2)

    @cached_property
    def unit(self) -> float:
        """A power of two that brings the largest magnitude near 1, so that squares are in range."""
        largest = float(np.max(self.magnitude, initial=0, where=np.isfinite(self.magnitude)))
        exponent = int(np.frexp(largest)[1]) if largest else 0
        return 2.0 ** -max(-1000, min(1000, exponent))

    def coherence(self, precision: Precision) -> float:
        """Return the factor of roundings over independent ones on these data (`coherence`)."""
        if 0 in (self.batch, self.m, self.n, self.k):
            return 1.0
        rng = np.random.default_rng([self.seed, 0xC0])
        index = int(rng.integers(self.batch))
        return sampled(self.item(self.a, index), self.item(self.b, index), precision, rng)

    def item(self, operand: Array, index: int) -> Array:
        """Return one product's matrix of an operand whose leading axes may have been broadcast."""
        full = np.broadcast_to(operand, self.batch_shape + operand.shape[-2:])
        return np.asarray(full[np.unravel_index(index, self.batch_shape)])

    def items(self, operand: Array, start: int, stop: int) -> Array:
        """Return the matrices of several products, (stop - start, rows, columns).

        They are a view where that is possible.
        """
        if operand.shape[:-2] == self.batch_shape:
            return np.asarray(operand.reshape(self.batch, *operand.shape[-2:])[start:stop])
        if stop - start == 1:
            return self.item(operand, start)[None]
        full = np.broadcast_to(operand, self.batch_shape + operand.shape[-2:])
        return np.asarray(full[np.unravel_index(np.arange(start, stop), self.batch_shape)])

    def rows_by_batch(self) -> list[tuple[int, slice, Array]]:
        """Return triples: index of a product, where its rows lie in ``rows``, and those rows."""
        if not self.rows.size:
            return []
        batches, rows = np.divmod(self.rows, self.m)
        indices, starts = np.unique(batches, return_index=True)
        stops = np.append(starts[1:], len(rows))
        return [
            (int(index), slice(start, stop), rows[start:stop])
            for index, start, stop in zip(indices, starts, stops, strict=True)
        ]


def product_reference(
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: str = "N",
    op_b: str = "N",
    seed: int = 0,
    flop_budget: float = FLOP_BUDGET,
) -> ProductReference:
    """Return the reference of `argand.gemm` with the same arguments, by scipy.linalg.blas.zgemm.

    Full where 8 batch m n k is within ``flop_budget`` (and the result within 2^24 elements), else
    of rows sampled with ``seed``: the first, the last, and others spread over all products. As in
    BLAS, alpha = 0 leaves A and B unread and beta = 0 leaves C unread.
    """
    a, b = oriented(np.asarray(a), op_a), oriented(np.asarray(b), op_b)
    batch_shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total = int(np.prod(batch_shape, dtype=np.int64)) * a.shape[-2]
    k, n = b.shape[-2:]
    affordable = min(flop_budget / (8 * max(n * k, 1)), MAX_ELEMENTS / max(n, 1))
    rows = sample_rows(total, max(4, int(affordable)), seed)
    found = ProductReference(
        a=a, b=b, c=np.asarray(c) if c is not None and beta != 0 else None, alpha=complex(alpha),
        beta=complex(beta), batch_shape=batch_shape, rows=rows,
        values=np.zeros((len(rows), n), complex), magnitude=np.zeros((len(rows), n)),
        sampled=len(rows) < total, seed=seed,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for_each(partial(_fill, found), _parts(found))
    return found


def oriented(x: Array, op: str) -> Array:
    """Return op(x): x, its transpose, or its conjugate transpose; a view where it can be."""
    if op == "N":
        return x
    return np.swapaxes(x, -1, -2) if op == "T" else np.conj(np.swapaxes(x, -1, -2))


def sample_rows(total: int, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Return ``count`` of ``total`` rows: first, last, and random ones of equal stretches."""
    if count >= total:
        return np.arange(total)
    edges = np.linspace(1, total - 1, count - 1).astype(np.int64)
    inner = np.random.default_rng(seed).integers(edges[:-1], edges[1:])
    return np.unique(np.concatenate([[0], inner, [total - 1]]))


@dataclass(frozen=True)
class _Part:
    """Rows and columns of one product: ``where`` in the reference's rows, ``chosen`` in its own."""

    index: int
    where: slice
    chosen: Array
    columns: slice


def _parts(found: ProductReference) -> Iterator[_Part]:
    for index, where, chosen in found.rows_by_batch():
        columns = stretches(found.n, max(1, _FACTOR_VALUES // max(found.k, 1)))
        rows = stretches(len(chosen), max(1, _FACTOR_VALUES // max(found.k, 1)))
        for some in rows:
            there = slice(where.start + some.start, where.start + some.stop)
            yield from (_Part(index, there, chosen[some], each_of) for each_of in columns)


def _fill(found: ProductReference, part: _Part) -> None:
    from scipy.linalg.blas import zgemm

    place = part.where, part.columns
    if found.k:
        a = found.item(found.a, part.index)[part.chosen].astype(complex)
        b = found.item(found.b, part.index)[:, part.columns].astype(complex)
        # BLAS is column-major: C^T = B^T A^T, so that no array is transposed in memory. In SciPy's
        # no other thread computes meanwhile; the copies and the magnitudes are shared out.
        found.values[place] = zgemm(found.alpha, np.ascontiguousarray(b).T, a.T).T
        found.magnitude[place] = abs(found.alpha) * (np.abs(a) @ np.abs(b))
    if found.c is not None:
        c = found.item(found.c, part.index)[part.chosen, part.columns].astype(complex)
        found.values[place] += found.beta * c
        found.magnitude[place] += abs(found.beta) * np.abs(c)


@dataclass(frozen=True)
class SpectrumReference:
    """Discrete Fourier transforms of the rows of x (..., N), and ||x||_1 in the same scaling."""

    values: Array
    magnitude: Array


def spectrum_reference(
    x: Array, *, inverse: bool = False, norm: str = "backward"
) -> SpectrumReference:
    """Return scipy.fft.fft or ifft of x (..., N) in complex128, over the last axis.

    Raises ValueError for an unknown norm.
    """
    from scipy import fft

    if norm not in NORMS:
        raise ValueError(f"norm must be one of {list(NORMS)}, got {norm!r}")
    x = np.asarray(x)
    rows = x.reshape(-1, x.shape[-1])
    values, sizes = np.empty(rows.shape, complex), np.zeros(len(rows))
    transform = fft.ifft if inverse else fft.fft
    power = {"backward": inverse, "ortho": 0.5, "forward": not inverse}[norm]
    scale = x.shape[-1] ** -float(power)

    def fill(some: slice) -> None:
        wide = rows[some].astype(complex, copy=False)
        values[some] = transform(wide, norm=norm)
        for piece in stretches(x.shape[-1], _BLOCK_VALUES):
            sizes[some] += scale * np.abs(wide[:, piece]).sum(axis=-1)

    with np.errstate(all="ignore"):
        for_each(fill, stretches(len(rows), max(1, _BLOCK_VALUES // x.shape[-1])))
    return SpectrumReference(values.reshape(x.shape), sizes.reshape(x.shape[:-1]))


@dataclass(frozen=True)
class SoftmaxReference:
    """x (..., columns) as it was given, and its softmax in fp64."""

    x: Array
    values: Array


def softmax_reference(x: Array) -> SoftmaxReference:
    """Return scipy.special.softmax over the last axis in fp64, of x before any rounding."""
    from scipy import special

    x = np.asarray(x)
    rows = x.reshape(-1, x.shape[-1])
    values = np.empty(rows.shape)

    def fill(some: slice) -> None:
        values[some] = special.softmax(rows[some].astype(np.float64), axis=-1)

    with np.errstate(all="ignore"):
        for_each(fill, stretches(len(rows), max(1, _BLOCK_VALUES // x.shape[-1])))
    return SoftmaxReference(x, values.reshape(x.shape))
