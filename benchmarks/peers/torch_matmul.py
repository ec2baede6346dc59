"""A peer: PyTorch's complex matmul, which multiplies by cuBLAS, with tf32 allowed or not."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.peers._peer import Candidate, Peer
from benchmarks.peers.cublas import rounding

_ALLOWED = {"fp32": False, "tf32": True}


def tensors(a: Any, b: Any) -> tuple[Any, ...]:
    """Return the copies of CuPy arrays as tensors."""
    import torch

    return tuple(torch.from_dlpack(x).clone() for x in (a, b))


def array(x: Any) -> Any:
    """Return a tensor as a CuPy array."""
    import cupy

    return cupy.from_dlpack(x)


def _algorithm(precision: str) -> str:
    return f"matmul complex64, allow_tf32={_ALLOWED[precision]}"


def _multiply(precision: str, a: Any, b: Any) -> Any:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = _ALLOWED[precision]
    return a @ b


def _prepared() -> list[Candidate]:
    return [
        Candidate(
            "torch", rounding(name), _algorithm(name), tensors, partial(_multiply, name), array
        )
        for name in _ALLOWED
    ]


PEER = Peer(
    name="torch", operation="gemm", backends=("cuda",), precisions=tuple(_ALLOWED),
    algorithm=_algorithm, modules=("torch",), prepared=_prepared, precision=rounding,
)  # fmt: skip
