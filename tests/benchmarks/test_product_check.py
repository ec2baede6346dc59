"""The check of large products: what it looks at, what it costs, and what it sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, to_pairs
from argand.device import cpu

from benchmarks.gemm.operands import normal, random_operands
from benchmarks.gemm.ours import candidates
from benchmarks.gemm.product_check import ELEMENTS, ProductCheck, Sample
from benchmarks.gemm.shapes import SUITES, Shape
from benchmarks.peers import Candidate, unscaled

SHAPE = Shape(300, 200, 90, batch=30)


def ours(precision: str, output: str = "complex64") -> Candidate:
    """Ours at a precision from complex64, or from complex-half where it returns that."""
    given = "complex-half" if output == "complex-half" else "complex64"
    return next(
        one
        for one in candidates(cpu(), [PRECISIONS[precision]])
        if (one.input, one.output) == (given, output)
    )


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Sample.of
    monkeypatch.setattr(Sample, "of", lambda shape, seed, *_: whole(shape, seed, 1 << 19))


@pytest.mark.parametrize("shape", SUITES["gemm"], ids=str)
def test_no_shape_of_the_suite_costs_more_than_it_may(shape: Shape) -> None:
    sample = Sample.of(shape, seed=1)
    rows, columns = len(sample.rows), len(sample.columns)
    each = rows * shape.k + shape.k * columns + rows * columns
    # A little more where fewer than the least number of rows or columns would have fitted.
    assert len(sample.products) * each <= 1.1 * ELEMENTS
    for size, chosen in (
        (shape.batch, sample.products), (shape.m, sample.rows), (shape.n, sample.columns),
    ):  # fmt: skip
        assert chosen[0] == 0
        assert chosen[-1] == size - 1
        assert np.all(np.diff(chosen) > 0)


@pytest.mark.parametrize("shape", SUITES["gemm"], ids=str)
def test_every_tile_of_a_sampled_product_is_checked(shape: Shape) -> None:
    """Tiles of 128 rows and columns: the smallest that any large product uses."""
    sample = Sample.of(shape, seed=1)
    for size, chosen in ((shape.m, sample.rows), (shape.n, sample.columns)):
        assert set(chosen // 128) == set(range(-(-size // 128)))


def test_small_products_are_checked_as_a_whole() -> None:
    assert Sample.of(SHAPE, seed=1).whole
    assert not Sample.of(replace(SHAPE, batch=1000), seed=1).whole


@pytest.mark.usefixtures("small_budget")
def test_a_sampled_check_passes_what_is_right_and_sees_what_is_not() -> None:
    a, b = random_operands(SHAPE, seed=1)
    check = ProductCheck(SHAPE, a, b, backend="cpu", seed=1)
    sample = Sample.of(SHAPE, 1)
    assert not sample.whole
    right = a @ b
    found = check(right, ours("fp32"))
    assert (found.verified, found.reference) == (True, "sampled")

    wrong = right.copy()
    wrong[sample.products[1], sample.rows[2], sample.columns[3]] += 1
    assert not check(wrong, ours("fp32")).verified

    outside = next(i for i in range(SHAPE.batch) if i not in sample.products)
    wrong = right.copy()
    wrong[outside, 5, 7] = np.nan
    assert check(wrong, ours("fp32")).reason == "1 elements are not finite"

    with pytest.raises(ValueError, match=r"result.shape must be \(30, 300, 200\)"):
        check(right[1:], ours("fp32"))


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_complex_half_result_may_be_off_by_its_own_rounding(precision: str) -> None:
    shape = Shape(20, 30, 400)
    a, b = random_operands(shape, seed=2)
    check = ProductCheck(shape, a, b, backend="cpu", seed=2)
    one = ours(precision, "complex-half")
    assert one.precision == unscaled(PRECISIONS[precision])
    stored = one.result(one.compute(*one.prepare(a, b)))
    found = check(stored, one)
    assert found.verified, found.reason
    # Rounding the exact product alone is well within, a unit in the last place of a large one not.
    exact = (a.astype(complex) @ b).astype(np.complex64)
    assert check(to_pairs(exact, precision).to_complex64(), one).verified
    largest = np.unravel_index(np.abs(exact).argmax(), exact.shape)
    wrong: Any = stored.copy()
    wrong[largest] *= 1.5
    assert not check(wrong, one).verified


def test_operands_do_not_depend_on_how_many_cores_make_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.gemm.operands._CHUNK_VALUES", 100)
    first = normal((7, 93), np.random.SeedSequence(5))
    monkeypatch.setattr("benchmarks.gemm.operands.available_cores", lambda: 1)
    assert np.array_equal(first, normal((7, 93), np.random.SeedSequence(5)))
    assert abs(first.mean()) < 0.2
    assert abs(first.std() - 1) < 0.2
    assert first.dtype == np.float32


def test_operands_of_a_batch_and_of_one_product() -> None:
    a, b = random_operands(SHAPE, seed=1)
    assert (a.shape, b.shape) == ((30, 300, 90), (30, 90, 200))
    assert a.dtype == b.dtype == np.complex64
    a, b = random_operands(Shape(2, 3, 4), seed=1)
    assert (a.shape, b.shape) == ((2, 4), (4, 3))
    assert not np.array_equal(a.ravel(), b.ravel()[:8])
