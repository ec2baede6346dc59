"""Contractions on a GPU, whose products read and write the caller's memory by its strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import contract

from tests.kernels.contract.contractions import SUBSCRIPTS, operands
from tests.normal import wide_normal

pytestmark = pytest.mark.gpu
ROUGH = {"fp64": 1e-12, "3xtf32": 1e-5, "fp16": 5e-3}
"""Errors beside which a wrong element is far: of at most 12 terms of order 1."""


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("precision", ROUGH)
def test_contractions(cp: Any, rng: np.random.Generator, subscripts: str, precision: str) -> None:
    a, b = operands(rng, subscripts)
    bias = wide_normal(rng, *np.einsum(subscripts, a, b).shape[-1:])
    expected = np.conj(2.5j * np.einsum(subscripts, a.conj(), b) + bias)
    on_gpu = [cp.asarray(x, "complex128" if precision == "fp64" else "complex64") for x in (a, b)]
    tolerance = ROUGH[precision] * 20

    def call(**options: Any) -> Any:
        return contract(subscripts, *on_gpu, precision=precision, conj_a=True, scale=2.5j,
                        bias=cp.asarray(bias), conj=True, **options)  # fmt: skip

    np.testing.assert_allclose(call().get(), expected, rtol=0, atol=tolerance)
    out = cp.full(expected.shape[::-1], np.nan, on_gpu[0].dtype).T
    assert call(out=out) is out
    np.testing.assert_allclose(out.get(), expected, rtol=0, atol=tolerance)
    found = call(power=True).get()
    np.testing.assert_allclose(found, abs(expected) ** 2, rtol=0, atol=tolerance * 40)


@pytest.mark.parametrize("precision", ["3xtf32", "fp16"])
def test_a_bias_of_large_products_is_repeated_by_strides(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """A bias of products by wgmma: its rows are one row in memory, or its columns one column."""
    a, b = (cp.asarray(wide_normal(rng, *shape), "complex64") for shape in ((300, 260), (260, 520)))
    row, column = cp.asarray(wide_normal(rng, 520)), cp.asarray(wide_normal(rng, 300, 1))
    plain = a.astype("complex128") @ b.astype("complex128")
    for bias in (row, column):
        found = contract("ij,jk->ik", a, b, bias=bias, precision=precision)
        error = cp.linalg.norm(found - (plain + bias)) / cp.linalg.norm(plain)
        assert error < ROUGH[precision]
        turned = cp.atleast_2d(bias).T
        found = contract("ij,jk->ki", a, b, bias=turned, precision=precision)
        error = cp.linalg.norm(found - (plain.T + turned)) / cp.linalg.norm(plain)
        assert error < ROUGH[precision]
