"""Products by exact integers are verified like all others, by bounds of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Precision, gemm, get_precision
from argand.gemm.modular.integer_range import integer_range
from argand.gemm.modular.moduli import moduli
from argand.gemm.modular.scaling import exponents
from argand.precision import EXACT_PRECISIONS, any_precision

from tests.covers import EXHAUSTIVE, examples
from workflow.accuracy import bounds
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference
from workflow.accuracy.underflow import underflow

Array = np.ndarray[Any, Any]
SOME = list(EXACT_PRECISIONS)[:: 1 if EXHAUSTIVE else 4]
SHAPES = ((60, 70, 300), (30, 20, 7), (40, 50, 64))


def operands(
    rng: np.random.Generator, row: Precision, shape: tuple[int, int, int], spread: float
) -> list[Array]:
    m, n, k = shape
    return [
        (
            (rng.standard_normal(size) + 1j * rng.standard_normal(size))
            * np.exp(spread * rng.standard_normal(size))
        ).astype(row.output)
        for size in ((m, k), (k, n), (m, n))
    ]


@pytest.mark.parametrize("name", SOME)
def test_right_results_are_verified(rng: np.random.Generator, name: str) -> None:
    row = any_precision(name)
    for shape in SHAPES[: examples(3)]:
        for alpha, beta in ((1, 0), (1 - 2j, 0.5j)):
            a, b, c = operands(rng, row, shape, spread=float(rng.choice([0.0, 2.0])))
            c = c if beta else None
            reference = product_reference(a, b, c, alpha=alpha, beta=beta, seed=3)
            result = gemm(a, b, c, alpha=alpha, beta=beta, precision=row)
            for backend in ("cpu", "cuda"):
                found = assess_product(reference, result, row, backend=backend)
                assert found.verified, found.reason
                assert found.rel_frobenius is not None
                assert found.bound is not None
                assert found.rel_frobenius <= found.bound <= 10 * found.rel_frobenius + 1e-14


def test_the_rounding_of_a_sum_that_one_late_term_decides(rng: np.random.Generator) -> None:
    """Sums before the last term are small and say nothing of what the result is rounded by."""
    row, side, k = any_precision("8xint8"), 16, 400
    parts = rng.integers(-1, 2, (2, 2, side, k)).astype(np.float64)
    parts[..., -1] = rng.integers(2**19, 2**20, parts.shape[:-1])
    a, b = ((x[0] + 1j * x[1]).astype(row.output) for x in parts)
    reference = product_reference(a, b.T, seed=3)
    found = assess_product(reference, gemm(a, b.T, precision=row), row, backend="cpu")
    assert found.verified, found.reason


@pytest.mark.parametrize("name", ["6xint8", "8xint8", "10xint8", "16xint8"])
def test_one_wrong_element_is_seen(rng: np.random.Generator, name: str) -> None:
    """Three times what the whole result may be off by is seen, so also one wrong residue."""
    row = any_precision(name)
    a, b, _ = operands(rng, row, SHAPES[0], spread=0.0)
    reference = product_reference(a, b, seed=3)
    result = gemm(a, b, precision=row)
    bound = assess_product(reference, result, row, backend="cpu").bound
    assert bound is not None
    result[5, 7] += 3 * bound * np.linalg.norm(result)
    assert not assess_product(reference, result, row, backend="cpu").verified


@pytest.mark.parametrize("name", EXACT_PRECISIONS)
def test_more_moduli_lose_less(name: str) -> None:
    row = any_precision(name)
    assert underflow(row, "cpu", 4096).of_largest > 0
    assert bounds.accumulation_error(row, 4096, "cuda") == bounds.accumulator_roundoff(row)
    if row.moduli > 6:
        fewer = any_precision(f"{row.moduli - 1}xint8")
        assert underflow(row, "cpu", 4096).of_largest < underflow(fewer, "cpu", 4096).of_largest / 5


def test_other_operations_refuse_them() -> None:
    with pytest.raises(ValueError, match="precision must be one of"):
        get_precision("7xint8")
    with pytest.raises(ValueError, match=r"7xint8 is for products \(argand.gemm\)"):
        get_precision(EXACT_PRECISIONS["7xint8"])
    assert not set(EXACT_PRECISIONS) & set(PRECISIONS)


def test_lines_that_lose_a_component_are_counted() -> None:
    """Seven moduli hold norms of 26 bits: 2^-20 of the largest component is kept, 2^-40 is not."""
    row = any_precision("7xint8")
    a, b = np.ones((6, 8), row.output), np.ones((8, 5), row.output)
    a[1, 2], a[2, 3], b[4, 1] = 2.0**-20, 2.0**-40, 1e-30j
    a[3, 0], a[3, 1] = np.inf, 2.0**-60
    with np.errstate(invalid="ignore"):
        reference, result = product_reference(a, b), gemm(a, b, precision=row)
    found = assess_product(reference, result, row, backend="cpu")
    assert found.verified, found.reason
    assert found.lines_out_of_range == 2
    assert found.largest_spread == pytest.approx(1e30)


def test_a_product_without_rows_is_verified() -> None:
    row = any_precision("7xint8")
    a, b = np.ones((2, 0, 8), row.output), np.ones((8, 5), row.output)
    found = assess_product(product_reference(a, b), gemm(a, b, precision=row), row, backend="cpu")
    assert found.verified, found.reason


@pytest.mark.parametrize("name", ["7xint8", "11xint8", "3xfp16", "fp16"])
def test_rows_whose_addend_is_not_finite_are_no_alarm(rng: np.random.Generator, name: str) -> None:
    """Random vectors leave them out: their bound is the worst case, of operands' rounding too."""
    row = any_precision(name)
    a, b, c = operands(rng, row, (6, 5, 40), 0.0)
    c[:, 2] = np.inf
    with np.errstate(invalid="ignore"):
        reference = product_reference(a, b, c, beta=0.5)
        result = gemm(a, b, c, beta=0.5, precision=row)
    found = assess_product(reference, result, row, backend="cpu")
    assert found.verified, found.reason
    result[0, 0] *= 1.1
    assert not assess_product(reference, result, row, backend="cpu").verified


@pytest.mark.parametrize(("name", "spread"), [("7xint8", 3.0), ("16xint8", 6.5)])
def test_lines_are_counted_as_their_exponents_say(
    rng: np.random.Generator, name: str, spread: float
) -> None:
    row = any_precision(name)
    a, b, _ = operands(rng, row, (60, 50, 300), spread)
    lines, whole = [a, b.T], moduli(row.moduli)
    expected = [
        np.ldexp(np.minimum(abs(x.real), abs(x.imag)).min(axis=1), exponents(x, whole)) < 1
        for x in lines
    ]
    found = integer_range(a, b, row.moduli).out_of_range
    assert 0 < found == sum(int(x.sum()) for x in expected) < 110
