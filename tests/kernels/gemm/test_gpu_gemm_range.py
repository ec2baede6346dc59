"""GPU products of small, large, spread and infinite numbers and of long k (product_cases.py)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.tiles import mma_tiles

from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.product_cases import (
    FP32_CLASS,
    POWERS,
    assert_contained,
    assert_within,
    check,
    long_operands,
    magnitude,
    nonfinite,
    normal,
    of_any_scale,
    parts,
    relative_error,
    repeats_bit_for_bit,
    summation,
)
from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.precisions import SCALED, SPLIT, TENSOR

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]


@pytest.mark.parametrize("precision", TENSOR)
def test_small_integers_are_exact(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Products and sums below 2^24 of integers that every format holds."""
    a, b = (
        (rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)).astype(np.complex64)
        for shape in ((3, 130, 200), (3, 200, 70))
    )
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("power", POWERS)
def test_scaled_precisions_take_any_scale(
    cp: Any, rng: np.random.Generator, precision: str, power: tuple[int, int]
) -> None:
    """Rows and columns of very different size: values far beyond fp16's range, and subnormals.

    wgmma's are in test_gpu_wgmma_operands.py; what is computed without scales has fp32's range.
    """
    scaled = of_any_scale(rng, power)
    model = gemm(*scaled, precision=precision)
    there = (cp.asarray(x) for x in scaled)
    found = gemm(*there, precision=precision, kernels="mma.sync").get()
    size = magnitude(scaled[0].astype(complex), scaled[1].astype(complex), None)
    assert_within(found, model, summation(64, precision) * size + 2.0**-149)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(("left", "right"), [(1e-30, 1.0), (1.0, 1e30), (1e30, 1e-30)])
def test_amplitude_does_not_matter(
    cp: Any, rng: np.random.Generator, precision: str, left: float, right: float
) -> None:
    a, b = normal(rng, 70, 90) * np.float32(left), normal(rng, 90, 40) * np.float32(right)
    a[3], a[:, 7], b[11], b[:, 5] = 0, 0, 0, 0
    check(cp, a, b, precision=precision)
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    assert not found[3].any()
    assert not found[:, 5].any()


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("k", [1, 60, 1031])
def test_lines_that_spread_as_a_covariance_does(
    cp: Any, rng: np.random.Generator, precision: str, k: int
) -> None:
    """Elements of 1 to 1e8, against the model and against fp64 by the a-priori bound.

    What is below fp16's range is off by `Precision.scaled_floor` of its line's largest, each real
    part, in both terms' products (the derivation stands in workflow/accuracy/bounds.py).
    """
    row = PRECISIONS[precision]
    a, b = (
        normal(rng, *shape) * np.float32(1e8) ** rng.random(shape, dtype=np.float32)
        for shape in ((50, k), (k, 40))
    )
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    size = magnitude(a, b, None)
    slack = summation(k, precision) * size
    assert_within(found, gemm(a, b, precision=precision), slack)
    wide_a, wide_b = parts(a).astype(float), parts(b).astype(float)
    tops = wide_a.max(axis=1, keepdims=True), wide_b.max(axis=0)
    floor = row.scaled_floor * (
        tops[0] * wide_b.sum(axis=0) + wide_a.sum(axis=1, keepdims=True) * tops[1]
    )
    floor += 2 * k * row.scaled_floor**2 * tops[0] * tops[1]
    rounding = 2 * row.u + row.u**2 + row.dropped
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    assert_within(found, exact, slack + rounding * size + 2 * floor)


@pytest.mark.parametrize("precision", TENSOR)
def test_nonfinite_stays_in_its_row_and_column(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = nonfinite(rng)
    assert_contained(gemm(cp.asarray(a), cp.asarray(b), precision=precision).get())


@pytest.mark.parametrize("precision", SPLIT)
def test_the_error_of_a_split_does_not_grow_with_k(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Promotion: unpromoted, the truncating tensor core is off by 3e-5 or more at k = 4096.

    mma.sync keeps what rounding loses of an accumulator for the next slice: the error is that of a
    slice at every k, but for what varies with the operands, of which there are 2^14 results. Tiles
    promote after different k, so one takes all.
    """
    errors = []
    tile = next(x for x in mma_tiles(PRECISIONS[precision], ARCHS["sm_80"]) if x.warps_k > 1)
    with overridden(GemmChoice(mma=tile)):
        for a, b in long_operands(rng):
            found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
            errors.append(relative_error(found, a, b))
    assert max(errors) < FP32_CLASS
    assert max(errors) < 1.05 * min(errors)


@pytest.mark.parametrize("precision", TENSOR)
def test_same_call_same_bits(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = cp.asarray(normal(rng, 500, 700)), cp.asarray(normal(rng, 700, 300))
    assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))


@pytest.mark.usefixtures("wgmma")
@pytest.mark.parametrize("k", [512, 6000])
@pytest.mark.parametrize("precision", SPLIT)
def test_totals_beyond_fp32_are_infinite(cp: Any, precision: str, k: int) -> None:
    """Plans that spill accumulators, of the longer k, are among them."""
    a, b = (cp.full(shape, 2.0**100, np.complex64) for shape in ((200, k), (k, 300)))
    for choice in first_choices(cp, precision, GemmSizes(1, 200, 300, k)):
        with overridden(choice):
            found = gemm(a, b, precision=precision).get()
        assert np.isposinf(found.real).all(), choice
        assert (found.imag == 0).all(), choice
