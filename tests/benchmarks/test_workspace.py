"""The benchmark of workspace limits accepts right results and refuses wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
from argand import dft, gemm
from argand.dft.method import method_for
from argand.precision import any_precision

from benchmarks.workspace import PRODUCTS, Products, Transforms
from workflow.accuracy.bounds import product_bound
from workflow.accuracy.transform_bounds import dft_bound

N = 150


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal((*shape, 2), dtype=np.float32).view(np.complex64)[..., 0]


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


def test_one_wrong_row_of_transforms(rng: np.random.Generator) -> None:
    x = normal(rng, 9, N)
    bound = dft_bound(any_precision("3xfp16"), method_for(N), "cpu")
    reference, found = Transforms(np, x, bound), dft(x, precision="3xfp16")
    assert reference.holds(found, "3xfp16")
    for wrong in (1 + 2 * bound, np.nan):
        other = found.copy()
        other[7] *= wrong
        assert not reference.holds(other, "3xfp16")
