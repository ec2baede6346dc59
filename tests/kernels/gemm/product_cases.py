"""Cases that tests of GPU products share, with the CPU model and fp64 as references.

Tolerance. Both sides multiply the same rounded operands, so they differ only by how 2 k products of
real numbers are summed in fp32: by at most (2 k + 16) u |A||B| each, u = 2^-24 where sums are
rounded (BLAS, promoted sums) and 2^-22 where a tensor core sums, which truncates (2^-23) after
aligning to the largest addend. The 16 covers alpha, beta and undoing a scale. With `terms` terms
there are three times as many products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS, Precision, gemm, get_precision
from argand.gemm.sm90.plan import SPILL_INTERVAL, WgmmaPlan

from tests.normal import normal

Array = npt.NDArray[Any]
OPS = ("N", "T", "C")
FP32_CLASS = 5e-7
"""Most that a product of normal numbers may be off by at a split precision, relative, in norm."""


def stored(x: Array, op: str) -> Array:
    """The array whose op is x."""
    if op == "N":
        return x
    y = np.swapaxes(x, -1, -2)
    return np.ascontiguousarray(y.conj() if op == "C" else y)


def summation(k: int, precision: str) -> float:
    """The tolerance of the module's docstring, relative to |alpha| |A||B| + |beta| |C|."""
    if PRECISIONS[precision].output == "complex128":
        return (2 * k + 16) * 2 * 2.0**-53
    unit = 2.0**-24 if PRECISIONS[precision].exact_operands else 2.0**-22
    return (2 * k * len(PRECISIONS[precision].products) + 16) * (unit + 2.0**-24)


def parts(x: Array) -> Array:
    return np.maximum(np.abs(x.real), np.abs(x.imag)) + np.minimum(np.abs(x.real), np.abs(x.imag))


def check(cp: Any, a: Array, b: Array, c: Array | None = None, **how: Any) -> None:
    """Compare with the model and with fp64; every element, none of them left unwritten."""
    precision = get_precision(how.get("precision", "fp32"), how.get("rounding"))
    model = gemm(a, b, c, **{k: v for k, v in how.items() if k != "kernels"})
    out = cp.full(model.shape, np.nan, model.dtype)
    returned = gemm(cp.asarray(a), cp.asarray(b), None if c is None else cp.asarray(c),
                    out=out, **how)  # fmt: skip
    assert returned is out
    found = out.get()
    assert np.isfinite(found).all()
    wide = {"precision": "fp64"} | {
        k: v for k, v in how.items() if k.startswith(("op", "al", "be"))
    }
    exact = gemm(a, b, c, **wide)
    size = magnitude(a, b, c, **how)
    k = a.shape[-1] if how.get("op_a", "N") == "N" else a.shape[-2]
    slack = summation(k, precision.name) * size
    assert_within(found, model, slack)
    # fp64 bound: operands wrong by u each (2 u + u^2 of a product), products dropped, summation.
    # A number below the format's normal range is wrong by half its smallest step instead: with
    # rows scaled to 2^14 and values of order one that lies under the summation's slack.
    rounding = 2 * precision.u + precision.u**2 + precision.dropped
    assert_within(found, exact, slack + rounding * size)
    # The sum of the worst of every step would hide second terms that stand in wrong places.
    if precision.terms > 1:
        assert np.linalg.norm(found - exact) <= FP32_CLASS * np.linalg.norm(size)


class Expected:
    """The CPU model's result of a product, on the GPU, which results of many plans are held to.

    Each part may be off by the summation's slack, and a norm at a split precision by `FP32_CLASS`.
    """

    def __init__(self, cp: Any, a: Array, b: Array, c: Array | None = None, **how: Any) -> None:
        self._precision = get_precision(how["precision"])
        k = a.shape[-1] if how.get("op_a", "N") == "N" else a.shape[-2]
        size = magnitude(a, b, c, **how)
        self._cp, self._model = cp, cp.asarray(gemm(a, b, c, **how))
        self._slack = cp.asarray(summation(k, self._precision.name) * size)
        self._norm = FP32_CLASS * np.linalg.norm(size)
        self._given = [None if x is None else cp.asarray(x) for x in (a, b, c)], how

    def hold(self) -> None:
        """Compute the product, and check every element of it: none is left unwritten."""
        (a, b, c), how = self._given
        out = self._cp.full(self._model.shape, np.nan, self._model.dtype)
        off = gemm(a, b, c, out=out, **how) - self._model
        assert bool((abs(off.real) <= self._slack).all())
        assert bool((abs(off.imag) <= self._slack).all())
        if self._precision.terms > 1:
            assert float(self._cp.linalg.norm(off)) <= self._norm


def magnitude(a: Array, b: Array, c: Array | None, **how: Any) -> Array:
    turn = {"N": lambda x: x}.get
    left, right = (
        (turn(op) or (lambda x: np.swapaxes(x, -1, -2)))(parts(x).astype(np.float64))
        for x, op in ((a, how.get("op_a", "N")), (b, how.get("op_b", "N")))
    )
    size = abs(how.get("alpha", 1)) * (left @ right) * np.sqrt(2)
    beta = how.get("beta", 0)
    return size + abs(beta) * np.abs(c) if beta != 0 and c is not None else size


def assert_within(found: Array, expected: Array, allowed: Array) -> None:
    for error in (np.abs(found.real - expected.real), np.abs(found.imag - expected.imag)):
        excess = error - allowed
        assert (excess <= 0).all(), f"off by {error.max()}, allowed {allowed[excess > 0].min()}"


def repeats_bit_for_bit(call: Callable[[], Any]) -> bool:
    """Whether a product gives the same bits each time."""
    first = call()
    return all(bool((call() == first).all()) for _ in range(5))


POWERS = [(26, 26), (-60, 40), (90, 10), (-100, -10), (60, -130), (112, -60), (-60, 112)]


def of_any_scale(rng: np.random.Generator, power: tuple[int, int]) -> list[Array]:
    """A (40, 64) and B (64, 30) of these powers of two, their rows and columns scaled further."""
    a, b = normal(rng, 40, 64), normal(rng, 64, 30)
    a *= np.float32(2.0) ** rng.integers(-8, 9, (40, 1)).astype(np.float32)
    b *= np.float32(2.0) ** rng.integers(-8, 9, (1, 30)).astype(np.float32)
    return [
        np.ldexp(x.view(np.float32), p).view(np.complex64)
        for x, p in zip((a, b), power, strict=True)
    ]


def nonfinite(rng: np.random.Generator) -> tuple[Array, Array]:
    """A (70, 64) with a NaN in row 3, B (64, 70) with an infinity in column 60."""
    a, b = normal(rng, 70, 64), normal(rng, 64, 70)
    a.view(np.uint32)[3, 10] = 0x7FFFFFFF  # the NaN that an addition of half an ulp would wrap
    b[5, 60] = np.inf
    return a, b


def assert_contained(found: Array) -> None:
    """The product of `nonfinite` operands is finite but in that row and that column."""
    clean = np.ones(found.shape, bool)
    clean[3], clean[:, 60] = False, False
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[:, 60]).any()
    assert np.isfinite(found[clean]).all()


LONG = (64, 256, 1024, 4096, 16384)
"""Values of k over which the error of promoted sums must not grow."""


def long_operands(rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """A (128, k) and B (k, 128) of short to long k."""
    for k in LONG:
        yield normal(rng, 128, k), normal(rng, k, 128)


def promoted_error(k: int, plan: WgmmaPlan, precision: Precision) -> float:
    """The largest `relative_error` of sums that a plan promotes from wgmma.

    Of normal numbers, in units of u = 2^-24. A slice adds large products n times, each time to 1/n
    more of them (small ones come before, and lose nothing in comparison). Each sum is cut by at
    most 2 u, on average u: that shrinks the slice by (1/n + 2/n + ... + 1) u = (n + 1) / 2 u, the
    same in all of them. What varies is independent, so squares add up: of the truncations around
    their average, at most uniform in 2 u, (n + 1) / 2 / 3; of partial sums around what their end
    makes one expect, n steps of a random walk, (n^2 - 1) / 12; of operands and of the product that
    is dropped, both of 2^-12 / sqrt 3 squared, 1. Slices are added to accumulators of many at most,
    those of three halves of a `SPILL_INTERVAL`, then accumulators spill exactly but for their end:
    rounded to nearest each time, uniform in u, 1/3, of accumulators that are half as large on
    average, 1/2, and lie anywhere between two powers of two, the average square of the lower one
    over theirs being 3 / (8 log 2).
    """
    n = 2 * plan.block_k // precision.operand.mma_k
    slices = min(k / plan.block_k, 3 / 2 * SPILL_INTERVAL)
    shrinks, walk = (n + 1) / 2, (n**2 - 1) / 12
    rounded = slices / 3 / 2 * 3 / (8 * np.log(2))
    return 2.0**-24 * float(np.sqrt(shrinks**2 + shrinks / 3 + walk + 1 + rounded))


def relative_error(found: Array, a: Array, b: Array) -> float:
    """||C^ - C||_F / ||C||_F against fp64."""
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


SHAPES = [
    (1, 1, 1), (1, 7, 3), (5, 1, 9), (2, 3, 1), (16, 8, 8), (17, 31, 13), (97, 101, 103),
    (128, 128, 32), (129, 127, 65), (64, 1, 200), (1, 257, 64), (33, 300, 259), (256, 256, 1031),
]  # fmt: skip
