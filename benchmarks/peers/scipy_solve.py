"""A peer: LAPACK's gesv by scipy.linalg.lapack, in the operands' own type."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._peer import Peer


def solve(_precision: str, a: Any, b: Any) -> Any:
    """Return x of a x = b for a (n, n) and b (n, r), in their type; raises LinAlgError.

    `scipy.linalg.solve` estimates the condition too, which takes longer than this.
    """
    from scipy.linalg import lapack

    gesv = lapack.cgesv if a.dtype == np.complex64 else lapack.zgesv
    *_, x, zero_pivot = gesv(a, b)
    if zero_pivot:
        raise np.linalg.LinAlgError(f"the matrix is singular: pivot {zero_pivot} is 0")
    return x


PEER = Peer(
    name="scipy", operation="solve", backends=("cpu",), precisions=("fp64", "fp32"),
    algorithm=lambda precision: f"gesv {PRECISIONS[precision].output}", modules=("scipy",),
    compute=solve,
)  # fmt: skip
