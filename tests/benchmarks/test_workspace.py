"""The benchmark of workspace limits accepts right results and refuses wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import dft, gemm, herk, pairs
from argand.dft.method import method_for
from argand.precision import any_precision

from benchmarks.workspace import PRODUCTS, hermitian, limit_in_words
from benchmarks.workspace_references import EXACT, HermitianProducts, Products, Transforms
from tests.normal import normal
from workflow.accuracy.bounds import product_bound
from workflow.accuracy.transform_bounds import dft_bound

N = 150


@pytest.mark.parametrize("precision", PRODUCTS)
def test_one_wrong_element_of_a_product(rng: np.random.Generator, precision: str) -> None:
    a, b = normal(rng, N, N), normal(rng, N, N)
    reference, row = Products(np, a, b), any_precision(precision)
    found = gemm(a, b, precision=precision)
    assert reference.holds(found, precision)
    size = abs(a[3]).astype(float) @ abs(b[:, 5])
    # 7xint8 has another bound beside it, of the longest components.
    for wrong in (max(1.1 * product_bound(row, N, "cuda"), 1e-3) * size, np.nan):
        other = found.copy()
        other[3, 5] += 1j * wrong
        assert not reference.holds(other, precision)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_component_of_a_line_may_be_negative(sign: int) -> None:
    """fp16 loses up to 2^-39 of it in each other one, here some 0.01 of a result of 2e-4."""
    a = sign * np.array([[1e9 + 1e9j, 1e-4 + 1e-4j]], np.complex64)
    b = sign * np.array([[0], [1 + 1j]], np.complex64)
    reference, found = Products(np, a, b), np.array([[1e-3]], np.complex64)
    assert reference.holds(found, "fp16")
    assert not reference.holds(found, "tf32")


@pytest.mark.parametrize("precision", [*PRODUCTS, EXACT])
@pytest.mark.parametrize("form", ["full", "triangle"])
def test_one_wrong_element_of_a_hermitian_product(
    rng: np.random.Generator, precision: str, form: Any
) -> None:
    x = normal(rng, N, N + 9)
    if precision == EXACT:
        x = rng.integers(-128, 128, (*x.shape, 2)).astype(np.int8)
        reference = HermitianProducts(np, x.astype(np.float32).view(np.complex64)[..., 0])
        found = herk(pairs(x), precision=precision, form=form)
    else:
        reference, found = HermitianProducts(np, x), herk(x, precision=precision, form=form)
    assert reference.holds(found, precision)
    at = (5, 3) if form == "full" else 5 * 6 // 2 + 3
    diagonal = (7, 7) if form == "full" else 7 * 8 // 2 + 7
    for place, wrong in ((at, 1), (at, np.nan), (diagonal, 1e-30j)):
        other = found.copy()
        other[place] += wrong
        if form == "full" and place == at:  # Hermitian all the same
            other[3, 5] = other[5, 3].conj()
        assert not reference.holds(other, precision)


def test_hermitian_products_are_called_as_they_are_compared(rng: np.random.Generator) -> None:
    x = normal(rng, 70, 50)
    given = pairs(rng.integers(-128, 128, (70, 50, 2)).astype(np.int8))
    made = [*hermitian(x, PRODUCTS, np), *hermitian(given, [EXACT], np)]
    assert len(made) == 2 * (len(PRODUCTS) + 1)
    for problem in made:
        problem.out.fill(np.nan)
        problem.call()
        assert problem.reference.holds(problem.out, problem.precision)


def test_limits_in_words() -> None:
    assert [limit_in_words(x) for x in (32 << 20, 16 << 10)] == ["32 MiB", "16 KiB"]


def test_one_wrong_row_of_transforms(rng: np.random.Generator) -> None:
    x = normal(rng, 9, N)
    bound = dft_bound(any_precision("3xfp16"), method_for(N), "cpu")
    reference, found = Transforms(np, x, bound), dft(x, precision="3xfp16")
    assert reference.holds(found, "3xfp16")
    for wrong in (1 + 2 * bound, np.nan):
        other = found.copy()
        other[7] *= wrong
        assert not reference.holds(other, "3xfp16")
