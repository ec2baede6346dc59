"""A peer: softmax in Triton, one pass, a program a row that it holds whole."""

from __future__ import annotations

from functools import partial
from typing import Any

from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, Peer
from benchmarks.peers.torch_softmax import array, tensor

_ALGORITHM = "one pass, a program a row"


def _prepared(kind: str, output: str, operation: str = "softmax") -> list[Candidate]:
    if kind not in ("fp32", "fp16") or operation != "softmax":
        return []
    return [
        Candidate(
            "triton", PRECISIONS["fp32"], _ALGORITHM, partial(_prepare, kind), _compute, array,
            input=kind, output=output, chosen=_warps,
        )
    ]  # fmt: skip


def _prepare(kind: str, x: Any) -> tuple[Any, ...]:
    import torch

    from benchmarks.peers._triton_softmax import best_warps

    given = tensor(kind, x)
    out = torch.full_like(given, float("nan"))
    return given, out, best_warps(given, out)


def _compute(x: Any, out: Any, warps: int) -> Any:
    from benchmarks.peers._triton_softmax import softmax

    softmax(x, out, warps)
    return out


def _warps(_x: Any, _out: Any, warps: int) -> str:
    return f"{warps} warps"


PEER = Peer(
    name="triton", operation="softmax", backends=("cuda",), precisions=("fp32",),
    algorithm=lambda _: _ALGORITHM, modules=("triton", "torch"), prepared=_prepared,
)  # fmt: skip
