"""Products, transforms and softmaxes of no elements, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, dft, gemm, log_softmax, logsumexp, pack, softmax

from tests.kernels.empty_cases import LENGTHS, PRODUCTS, ROWS


@pytest.mark.parametrize("op", ["N", "T", "C"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_gemm(precision: str, op: str) -> None:
    for batch, m, n, k in PRODUCTS:
        a, b = np.ones((*batch, m, k), complex), np.ones((*batch, k, n), complex)
        a, b = (x if op == "N" else x.swapaxes(-1, -2) for x in (a, b))
        given = {"precision": precision, "op_a": op, "op_b": op}
        expected = np.full((*batch, m, n), k, complex)
        np.testing.assert_array_equal(gemm(a, b, **given), expected)
        np.testing.assert_array_equal(gemm(a, b, expected, beta=2, **given), 3 * expected)
        packed = (pack(x, precision, side=s, op=op) for x, s in ((a, "a"), (b, "b")))
        np.testing.assert_array_equal(gemm(*packed, precision=precision), expected)
        if precision in ("fp16", "bf16"):
            half = gemm(a, b, output="complex-half", **given)
            assert isinstance(half, Pairs)
            assert half.shape == expected.shape


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows(precision: str) -> None:
    for shape in ROWS:
        x = np.zeros(shape)
        assert softmax(x, precision=precision).shape == shape
        assert log_softmax(x, precision=precision).shape == shape
        assert logsumexp(x, precision=precision).shape == shape[:-1]
        for length in LENGTHS:
            found = (*shape[:-1], length)
            assert dft(np.zeros(found), precision=precision).shape == found
            assert dft(x, n=length, precision=precision).shape == found
