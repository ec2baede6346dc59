"""A peer: PyTorch's softmax; the power of complex numbers is a step of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, Peer


def softmax(_precision: str, x: Any) -> Any:
    """Return softmax of a CuPy array over the last axis, in its type."""
    import cupy
    import torch

    return cupy.from_dlpack(torch.softmax(torch.from_dlpack(x), dim=-1))


def tensor(kind: str, x: Any) -> Any:
    """Return a copy of a CuPy array as a tensor of elements ``kind``: of bf16 it has the bits."""
    import torch

    found = torch.from_dlpack(x).clone()
    return found.view(torch.bfloat16) if kind == "bf16" else found


def array(x: Any) -> Any:
    """Return a tensor as a CuPy array; of bf16 the bits."""
    import cupy
    import torch

    return cupy.from_dlpack(x.view(torch.uint16) if x.dtype == torch.bfloat16 else x)


def _prepared(kind: str, output: str, operation: str = "softmax") -> list[Candidate]:
    return [
        Candidate(
            "torch", PRECISIONS["fp32"], f"{operation} of {kind}", partial(_given, kind),
            partial(_compute, operation, output), array, input=kind, output=output,
        )
    ]  # fmt: skip


def _given(kind: str, x: Any) -> tuple[Any, ...]:
    return (tensor(kind, x),)


def _compute(operation: str, output: str, x: Any) -> Any:
    import torch

    if x.is_complex():
        x = torch.view_as_real(x).square().sum(-1)
    widened = {"dtype": torch.float32} if output == "fp32" and x.itemsize == 2 else {}
    return getattr(torch, operation)(x, -1, **widened)


PEER = Peer(
    name="torch", operation="softmax", backends=("cuda",), precisions=("fp32", "fp64"),
    algorithm=lambda _: "torch.softmax", modules=("torch",), compute=softmax, prepared=_prepared,
)  # fmt: skip
