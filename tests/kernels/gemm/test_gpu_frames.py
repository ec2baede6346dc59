"""Products of views in larger arrays: nothing beside a view is read into it or written (a GPU).

Pitches are even and lengths odd, so that TMA can address a line whose end lies within 16 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm

from tests.kernels.gemm.product_cases import (
    OPS,
    assert_within,
    magnitude,
    normal,
    stored,
    summation,
)
from tests.kernels.precisions import TENSOR

pytestmark = pytest.mark.gpu

SHAPES = ((69, 7, 43), (130, 65, 33), (301, 129, 95), (1000, 301, 201))


def framed(cp: Any, x: Any, fill: complex) -> tuple[Any, Any]:
    """An array of even pitch that begins at 16 bytes, and the view of its middle that holds x."""
    rows, columns = x.shape
    whole = cp.full((rows + 2, columns + columns % 2 + 2), fill, cp.complex64)
    view = whole[1 : rows + 1, :columns]
    view[...] = cp.asarray(x)
    return whole, view


@pytest.mark.parametrize("precision", [*TENSOR, "fp32", "8xint8"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("turned", [False, True])
def test_views_of_odd_length(
    cp: Any, rng: np.random.Generator, precision: str, op: str, turned: bool
) -> None:
    for m, n, k in SHAPES:
        a, b = normal(rng, m, k), normal(rng, k, n)
        _, left = framed(cp, stored(a, op), np.nan)
        _, right = framed(cp, stored(b, op), np.nan)
        slack = summation(k, "fp32" if precision == "8xint8" else precision)
        for c in (None, normal(rng, m, n)):
            start = np.full((m, n), np.nan, np.complex64) if c is None else c
            whole, out = framed(cp, start.T if turned else start, -1)
            result = out.T if turned else out
            how = {"precision": precision, "beta": 0 if c is None else 0.5}
            addend = None if c is None else result
            gemm(left, right, addend, out=result, op_a=op, op_b=op, **how)
            model = gemm(a, b, c, **how)
            assert_within(result.get(), model, slack * magnitude(a, b, c, beta=how["beta"]))
            out[...] = -1
            assert bool((whole == -1).all()), (m, n, k)
