"""A peer: PyTorch's batched Cholesky factorization and solution."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Peer


def solve(_precision: str, r: Any, b: Any) -> Any:
    """Return x of r x = b for CuPy arrays r (..., n, n) and b (..., n, k), in their type.

    Raises torch.linalg.LinAlgError, for which it waits for the device.
    """
    import cupy
    import torch

    factor = torch.linalg.cholesky(torch.from_dlpack(r))
    return cupy.from_dlpack(torch.cholesky_solve(torch.from_dlpack(b), factor))


PEER = Peer(
    name="torch", operation="hermitian", backends=("cuda",), precisions=("fp64", "fp32"),
    algorithm=lambda precision: f"cholesky, cholesky_solve {PRECISIONS[precision].output}",
    modules=("torch",), compute=solve,
)  # fmt: skip
