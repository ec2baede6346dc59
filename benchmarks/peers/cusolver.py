"""A peer: cuSOLVER's getrf and getrs."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Peer


def solve(_precision: str, a: Any, b: Any) -> Any:
    """Return x of a x = b for a (n, n) and b (n, r), CuPy arrays, in their type.

    It works on column-major copies, which cost the less the more a and b are so themselves. A
    singular matrix leaves values that are not finite.
    """
    from cupyx.scipy.linalg import lu_factor, lu_solve

    return lu_solve(lu_factor(a, check_finite=False), b, check_finite=False)


PEER = Peer(
    name="cusolver", operation="solve", backends=("cuda",), precisions=("fp64", "fp32"),
    algorithm=lambda precision: f"getrf {PRECISIONS[precision].output}", modules=("cupy",),
    compute=solve,
)  # fmt: skip
