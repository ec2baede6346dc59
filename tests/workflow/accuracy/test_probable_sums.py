"""Sums of split precisions as tensor cores make them, against what is probable of them.

A model of both families of kernels, on tensor cores of Ampere and of Hopper: these differ in how
many products they add at once and in how many bits they keep (`probabilistic.EXTRA_BITS`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, Precision
from argand.device import arch_for
from argand.gemm.sm80.tiles import mma_tiles
from scipy import stats

from tests.kernels.precisions import SPLIT
from tests.kernels.tensor_core_sums import added
from workflow.accuracy.assessment import FAILURE
from workflow.accuracy.bounds import accumulator_roundoff
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.probabilistic import (
    MIXED_DEPTH,
    SUM_DEVIATION,
    SUM_TRUNCATION,
    concentration,
    length_within,
)
from workflow.accuracy.references import product_reference
from workflow.accuracy.suspects import operand_terms

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Kernel:
    """The order in which a kernel sums.

    Attributes:
        mixed: small products beside large ones, and what a promotion rounds carried on (mma.sync);
            else a stage's small products first (wgmma).
        share: of an instruction's products that are added at once.
        extra_bits: kept of what is aligned.
        slices: instructions' k between two promotions.
        apart: small products, and those of either part of B, have sums of their own, which a
            promotion adds (a whole k by mma.sync).
    """

    mixed: bool
    share: float
    extra_bits: int
    slices: int
    apart: bool = False

    def product(self, a: Array, b: Array, precision: Precision) -> Array:
        """(m, k) @ (k, n)."""
        mma_k = precision.operand.mma_k
        depth = mma_k * self.slices
        missing = -a.shape[1] % depth
        left = [np.pad(x, ((0, 0), (0, missing))) for x in operand_terms(a, precision, -1)]
        right = [np.pad(x, ((0, missing), (0, 0))) for x in operand_terms(b, precision, -2)]
        parts, nothing = [], np.zeros((len(a), b.shape[1]))
        for first, second, sign in (("real", "imag", -1), ("imag", "real", 1)):
            total, carried = np.zeros((2, len(a), b.shape[1]))
            for start in range(0, left[0].shape[1], depth):
                every = defaultdict[tuple[bool, bool], Array](lambda: nothing)
                every[False, False] = carried if self.mixed else nothing
                for k, i, j in self._order(precision, range(start, start + depth, mma_k)):
                    for of_im, x, y in (
                        (False, left[i].real, getattr(right[j], first)),
                        (True, left[i].imag, sign * getattr(right[j], second)),
                    ):
                        place = (self.apart and i + j > 0, self.apart and of_im)
                        every[place] = self._instruction(
                            every[place], x[:, k : k + mma_k], y[k : k + mma_k]
                        )
                small, sums = (_fp32(every[x, False] + every[x, True]) for x in (True, False))
                sums = _fp32(sums + small)
                rounded = _fp32(total + sums)
                carried, total = _fp32(sums - _fp32(rounded - total)), rounded
            parts.append(total)
        return np.asarray((parts[0] + 1j * parts[1]).astype(np.complex64))

    def _order(self, precision: Precision, starts: range) -> list[tuple[int, int, int]]:
        if self.mixed:
            return [(k, *pair) for k in starts for pair in precision.products]
        return [(k, *pair) for pair in precision.products for k in starts]

    def _instruction(self, sums: Array, rows: Array, columns: Array) -> Array:
        at_once = int(rows.shape[1] * self.share)
        for k in range(0, rows.shape[1], at_once):
            sums = added(sums, rows[:, k : k + at_once], columns[k : k + at_once], self.extra_bits)
        return sums


def _fp32(x: Array) -> Array:
    return x.astype(np.float32).astype(float)


def kernels(precision: Precision) -> dict[str, Kernel]:
    """The deepest slices of each family."""
    mixed = MIXED_DEPTH // precision.operand.mma_k
    return {
        "Ampere": Kernel(True, 0.5, 1, mixed),
        "Hopper": Kernel(True, 1, 2, mixed),
        "wgmma": Kernel(False, 1, 2, 3),
        "Ampere, apart": Kernel(False, 0.5, 1, len(precision.products) * mixed, apart=True),
        "Hopper, apart": Kernel(False, 1, 2, len(precision.products) * mixed, apart=True),
    }


def numbers(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    if kind == "normal":
        x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    elif kind == "positive":  # truncations of products, too, have one sign
        x = rng.random(shape) + 1j * rng.random(shape)
    else:  # of one phase and of one size
        x = (1 + 1j) * rng.uniform(0.9, 1.1, shape)
    return np.asarray(x.astype(np.complex64))


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("kernel", "least"),
    [("Ampere", 0.6), ("Hopper", 0.3), ("wgmma", 0.15), ("Ampere, apart", 0.6),
     ("Hopper, apart", 0.3)],
)  # fmt: skip
@pytest.mark.parametrize("name", SPLIT)
def test_split_sums_are_within_what_is_probable(name: str, kernel: str, least: float) -> None:
    """Sums without scales, in a format of shorter instructions, are among them."""
    rng, precision = np.random.default_rng(17), PRECISIONS[name]
    shares = []
    for computed in filter(None, (precision, precision.without_scales)):
        model = kernels(computed)[kernel]
        for kind in ("normal", "positive", "near"):
            for k in (5, 32, 200):
                a, b = numbers(rng, kind, (12, k)), numbers(rng, kind, (k, 10))
                result = model.product(a, b, computed)
                found = assess_product(product_reference(a, b), result, precision, backend="cuda")
                assert found.verified, found.reason
                assert found.rel_frobenius is not None
                assert found.bound is not None
                shares.append(found.rel_frobenius / found.bound)
    # Not idle where sums err as much as operands: Ampere's are the largest that the bound is for.
    if precision.u <= 4 * accumulator_roundoff(precision):
        assert max(shares) > least


def test_sums_that_are_promoted_a_third_as_often_are_not() -> None:
    rng, precision = np.random.default_rng(18), PRECISIONS["3xtf32"]
    a, b = numbers(rng, "positive", (12, 1024)), numbers(rng, "positive", (1024, 10))
    model = Kernel(True, 0.5, 1, 3 * MIXED_DEPTH // PRECISIONS["tf32"].operand.mma_k)
    result = model.product(a, b, precision)
    found = assess_product(product_reference(a, b), result, precision, backend="cuda")
    assert found.verdict == "suspect"


@pytest.mark.parametrize(("share", "extra_bits"), [(0.5, 1), (1, 2)])
def test_an_instruction_loses_what_is_said_of_its_sum(share: float, extra_bits: int) -> None:
    """Small products of either sign beside a sum just above a power of two, in its u."""
    rng, count = np.random.default_rng(19), 4000
    sums = np.ldexp(rng.integers(2**23, 2**23 + 2**17, (1, count)), -23).astype(float)
    small = np.ldexp(rng.integers(-(2**14), 2**14, (16, count)), -30).astype(float)
    model = Kernel(True, share, extra_bits, 1)
    exact = sums + small.sum(axis=0)
    lost = (exact - model._instruction(sums, np.ones((1, 16)), small)) * 2.0**24
    spread = float(lost.std()) / math.sqrt(count)
    assert lost.mean() <= SUM_TRUNCATION + 5 * spread
    assert lost.mean() >= 0.7 * SUM_TRUNCATION
    products = 16 / 3 * 4.0 ** (1 - extra_bits)
    assert lost.std() <= math.sqrt(SUM_DEVIATION**2 + products) * 1.05


@pytest.mark.parametrize("name", SPLIT)
def test_mma_plans_promote_what_a_warp_sums_as_often_as_is_said(name: str) -> None:
    for plan in mma_tiles(PRECISIONS[name], arch_for(80)):
        assert 0 < plan.promotion_interval // plan.warps_k <= MIXED_DEPTH


def test_the_length_of_an_error_with_a_mean() -> None:
    """The bound on the length holds the longest of 1e5 draws."""
    rng = np.random.default_rng(20)
    for components in (1, 4, 100):
        drawn = rng.standard_normal((100_000, components)) / math.sqrt(components)
        along, squares = drawn.sum(axis=1) / math.sqrt(components), (drawn**2).sum(axis=1)
        for mean, deviation in ((0.0, 1.0), (3.0, 1.0), (1.0, 3.0)):
            limit = length_within(mean, deviation, components)
            # Of mean / sqrt(components) in each component, and what was drawn times the deviation.
            lengths = np.sqrt(mean**2 + 2 * mean * deviation * along + deviation**2 * squares)
            assert lengths.max() <= limit
    assert length_within(3.0, 0.0, 10) == 3
    assert length_within(3.0, 4.0, 1e30) == pytest.approx(5)
    for components in (1, 2, 50, 10_000):
        exact = math.sqrt(stats.chi2.isf(FAILURE, components) / components)
        assert exact <= concentration(components) <= 1.5 * exact
    assert length_within(0.0, 1.0, 50) == pytest.approx(concentration(50, 2))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_lengths_whose_squares_are_out_of_range(unit: float) -> None:
    assert length_within(3 * unit, 4 * unit, 50) == pytest.approx(unit * length_within(3, 4, 50))
    assert length_within(0.0, 0.0, 50) == 0
    assert length_within(float("inf"), 1.0, 50) == float("inf")
