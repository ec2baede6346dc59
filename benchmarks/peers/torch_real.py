"""A peer: a complex product as one real product of PyTorch at tf32."""

from __future__ import annotations

from typing import Any

from benchmarks.peers._peer import Candidate, Peer
from benchmarks.peers.cublas import rounding
from benchmarks.peers.torch_matmul import array, tensors

_ALGORITHM = "one product M x 2K by 2K x 2N, B converted"


def _multiply(a: Any, b: Any) -> Any:
    """Return complex A B as one real product at tf32, the conversion of B in the time.

    Interleaved A is already a real (m, 2 k) matrix of columns ar, ai, and C a real (m, 2 n); B
    becomes (2 k, 2 n) with a row br, bi and a row -bi, br for each of its rows.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    *batch, k, n = b.shape
    parts = torch.view_as_real(b)
    wide = torch.empty((*batch, k, 2, n, 2), dtype=parts.dtype, device=parts.device)
    wide[..., 0, :, :] = parts
    torch.neg(parts[..., 1], out=wide[..., 1, :, 0])
    wide[..., 1, :, 1] = parts[..., 0]
    product = torch.view_as_real(a).flatten(-2) @ wide.view(*batch, 2 * k, 2 * n)
    return torch.view_as_complex(product.unflatten(-1, (n, 2)))


def _prepared() -> list[Candidate]:
    return [Candidate("torch-real", rounding("tf32"), _ALGORITHM, tensors, _multiply, array)]


PEER = Peer(
    name="torch-real", operation="gemm", backends=("cuda",), precisions=("tf32",),
    algorithm=lambda _: _ALGORITHM, modules=("torch",), prepared=_prepared, precision=rounding,
)  # fmt: skip
