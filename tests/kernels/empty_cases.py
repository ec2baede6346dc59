"""Products and rows of which there are none, with NumPy on the CPU or CuPy on a GPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from argand import Pairs, dft, gemm, log_softmax, logsumexp, pack, softmax

_PRODUCTS = [
    (batch, m, n, k)
    for batch, m, n, k in itertools.product([(), (0,), (2,), (3, 0), (0, 3)], *[(0, 1, 3)] * 3)
    if 0 in (*batch, m, n, k)
]
"""Leading axes, m, n, k."""
_ROWS = [(0, 5), (3, 0, 4), (0, 0, 3), (0, 1)]
_LENGTHS = (1, 5, 31, 1009, 4096, 100_003)
"""Lengths that take every method."""


def check_empty_products(arrays: Any, precision: str, op: str) -> None:
    """Assert that sums of no products are 0, in all their forms, by ``arrays``, NumPy or CuPy."""

    def assert_is(found: Any, expected: Any) -> None:
        assert type(found) is arrays.ndarray
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.tolist(), expected.tolist())

    for batch, m, n, k in _PRODUCTS:
        a, b = arrays.ones((*batch, m, k), complex), arrays.ones((*batch, k, n), complex)
        a, b = (x if op == "N" else x.swapaxes(-1, -2) for x in (a, b))
        given = {"precision": precision, "op_a": op, "op_b": op}
        expected = arrays.full((*batch, m, n), k, complex)
        assert_is(gemm(a, b, **given), expected)
        c = arrays.full((*batch, m, n), 5, complex)
        assert_is(gemm(a, b, c, beta=2, **given), expected + 10)
        packed = (pack(x, precision, side=s, op=op) for x, s in ((a, "a"), (b, "b")))
        assert_is(gemm(*packed, precision=precision), expected)
        if precision in ("fp16", "bf16"):
            half = gemm(a, b, output="complex-half", **given)
            assert isinstance(half, Pairs)
            assert half.shape == expected.shape


def check_empty_rows(arrays: Any, precision: str) -> None:
    """Assert the shapes of softmaxes and transforms of no rows, by ``arrays``, NumPy or CuPy."""
    for shape in _ROWS:
        x = arrays.zeros(shape)
        assert softmax(x, precision=precision).shape == shape
        assert log_softmax(x, precision=precision).shape == shape
        assert logsumexp(x, precision=precision).shape == shape[:-1]
        for length in _LENGTHS:
            found = (*shape[:-1], length)
            assert dft(arrays.zeros(found), precision=precision).shape == found
            assert dft(x, n=length, precision=precision).shape == found
