"""A peer: numpy.linalg.solve over a batch, LAPACK's gesv of each matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers._peer import Peer


def solve(_precision: str, r: Any, b: Any) -> Any:
    """Return x of r x = b for r (..., n, n) and b (..., n, k), in their type.

    NumPy has no solver of definite systems, and SciPy's takes one matrix at a time. It computes in
    complex128 whatever the type is, and rounds x to it.
    """
    return np.linalg.solve(r, b)


PEER = Peer(
    name="numpy", operation="hermitian", backends=("cpu",), precisions=("fp64", "fp32"),
    algorithm=lambda _: "gesv complex128", modules=("numpy",), compute=solve,
)  # fmt: skip
