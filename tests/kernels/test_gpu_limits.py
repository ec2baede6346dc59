"""On a GPU: infinities and NaN where SciPy has them, and problems of no elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, log_softmax, logsumexp, softmax
from scipy import special

from tests.kernels.empty_cases import check_empty_products, check_empty_rows
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
    check_empty_products(cp, precision, op)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_empty_rows(cp: Any, precision: str) -> None:
    check_empty_rows(cp, precision)
