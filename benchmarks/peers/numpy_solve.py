"""A peer: numpy.linalg.solve, LAPACK's gesv."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._peer import Peer


def solve(_precision: str, a: Any, b: Any) -> Any:
    """Return x of a x = b for a (n, n) and b (n, r), in their type; raises LinAlgError.

    NumPy computes in complex128 whatever the type is, and rounds x to it.
    """
    return np.linalg.solve(a, b)


PEER = Peer(
    name="numpy", operation="solve", backends=("cpu",), precisions=("fp64", "fp32"),
    algorithm=lambda _: "gesv complex128", modules=("numpy",), compute=solve,
)  # fmt: skip
