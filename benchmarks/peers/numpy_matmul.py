"""A peer: NumPy's matmul, the product of the BLAS that it was built with."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._peer import Peer


def multiply(
    _precision: str, a: Any, b: Any, c: Any = None, *,
    alpha: complex = 1, beta: complex = 0, op_a: str = "N", op_b: str = "N",
) -> Any:  # fmt: skip
    """Return alpha op(a) op(b) + beta c by `numpy.matmul`, in the operands' type."""
    product = np.matmul(_oriented(a, op_a), _oriented(b, op_b))
    if alpha != 1:
        product *= product.dtype.type(alpha)
    if beta != 0:
        product += product.dtype.type(beta) * c
    return product


def _oriented(x: Any, op: str) -> Any:
    if op == "N":
        return x
    x = x.swapaxes(-1, -2)
    return x.conj() if op == "C" else x


PEER = Peer(
    name="numpy", operation="gemm", backends=("cpu",), precisions=("fp64", "fp32"),
    algorithm=lambda precision: f"matmul {PRECISIONS[precision].output}", modules=("numpy",),
    compute=multiply,
)  # fmt: skip
