"""On a GPU: infinities and NaN where SciPy has them, and problems of no elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, dft, gemm, log_softmax, logsumexp, pack, softmax
from scipy import special

from tests.kernels.empty_cases import LENGTHS, PRODUCTS, ROWS
from tests.kernels.softmax.softmax_cases import nasty_rows

pytestmark = pytest.mark.gpu


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("columns", [3, 40, 1001, 4096, 20_000, 50_257, 140_001])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_infinities_and_nan_are_where_scipy_has_them(
    cp: Any, name: str, columns: int, precision: str
) -> None:
    """Widths for lanes, blocks, clusters, rings and rows that are read again."""
    x = nasty_rows(columns)[:: 1 if columns < 5000 else 17]
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = getattr(special, name)(x.astype(float), axis=-1)
    function = {"softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp}[name]
    found = function(cp.asarray(x), precision=precision).get()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(function(x, precision=precision)))
    for output in ("fp16", "bf16"):
        halves = function(cp.asarray(x), precision=precision, output=output).get()
        if output == "bf16":
            halves = (halves.astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(np.isnan(halves), np.isnan(expected))
        np.testing.assert_array_equal(np.isinf(halves), np.isinf(expected))


@pytest.mark.parametrize("op", ["N", "C"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_empty_gemm(cp: Any, precision: str, op: str) -> None:
    for batch, m, n, k in PRODUCTS:
        a, b = cp.ones((*batch, m, k), complex), cp.ones((*batch, k, n), complex)
        a, b = (x if op == "N" else x.swapaxes(-1, -2) for x in (a, b))
        given = {"precision": precision, "op_a": op, "op_b": op}
        expected = np.full((*batch, m, n), k, complex)
        np.testing.assert_array_equal(gemm(a, b, **given).get(), expected)
        added = gemm(a, b, cp.asarray(expected), beta=2, **given)
        np.testing.assert_array_equal(added.get(), 3 * expected)
        packed = (pack(x, precision, side=s, op=op) for x, s in ((a, "a"), (b, "b")))
        np.testing.assert_array_equal(gemm(*packed, precision=precision).get(), expected)
        if precision in ("fp16", "bf16"):
            assert gemm(a, b, output="complex-half", **given).shape == expected.shape


@pytest.mark.parametrize("precision", PRECISIONS)
def test_empty_rows(cp: Any, precision: str) -> None:
    for shape in ROWS:
        x = cp.zeros(shape)
        assert softmax(x, precision=precision).shape == shape
        assert log_softmax(x, precision=precision).shape == shape
        assert logsumexp(x, precision=precision).shape == shape[:-1]
        for length in LENGTHS:
            found = (*shape[:-1], length)
            assert dft(cp.zeros(found), precision=precision).shape == found
            assert dft(x, n=length, precision=precision).shape == found
