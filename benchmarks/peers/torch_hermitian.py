"""A peer: PyTorch's batched Cholesky factorization and solution."""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, Peer


def solve(_precision: str, r: Any, b: Any) -> Any:
    """Return x of r x = b for CuPy arrays r (..., n, n) and b (..., n, k), in their type.

    Raises torch.linalg.LinAlgError, for which it waits for the device.
    """
    import cupy
    import torch

    factor = torch.linalg.cholesky(torch.from_dlpack(r))
    return cupy.from_dlpack(torch.cholesky_solve(torch.from_dlpack(b), factor))


def _unchecked(r: Any, b: Any) -> Any:
    import cupy
    import torch

    factor, _ = torch.linalg.cholesky_ex(torch.from_dlpack(r))
    return cupy.from_dlpack(torch.cholesky_solve(torch.from_dlpack(b), factor))


def _candidates() -> list[Candidate]:
    """Return solutions that raise nothing, as ours do not on a GPU, and so do not wait for it."""
    return [
        Candidate(
            "torch", PRECISIONS[name], "cholesky_ex, cholesky_solve", lambda r, b: (r, b),
            _unchecked, input=PRECISIONS[name].output, output=PRECISIONS[name].output,
        )
        for name in ("fp64", "fp32")
    ]  # fmt: skip


PEER = Peer(
    name="torch", operation="hermitian", backends=("cuda",), precisions=("fp64", "fp32"),
    algorithm=lambda precision: f"cholesky, cholesky_solve {PRECISIONS[precision].output}",
    modules=("torch",), compute=solve, prepared=_candidates,
)  # fmt: skip
