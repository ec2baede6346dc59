"""A peer: detected beams by PyTorch, all beams in memory, with tf32 allowed or not."""

from __future__ import annotations

from functools import partial
from typing import Any

from argand.beam_power.problem import Detect

from benchmarks.peers._beam_power import ALGORITHM, detected
from benchmarks.peers._peer import Candidate, Peer
from benchmarks.peers.cublas import rounding
from benchmarks.peers.torch_matmul import array, tensors

_ALLOWED = {"fp32": False, "tf32": True}


def _algorithm(precision: str) -> str:
    return f"{ALGORITHM}, allow_tf32={_ALLOWED[precision]}"


def _compute(detect: Detect, integrate: int, precision: str, weights: Any, samples: Any) -> Any:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = _ALLOWED[precision]
    return detected(torch, weights @ samples, detect, integrate)


def _prepared(detect: Detect = "power", integrate: int = 1) -> list[Candidate]:
    return [
        Candidate(
            "torch", rounding(name), _algorithm(name), tensors,
            partial(_compute, detect, integrate, name), array, output="real",
        )
        for name in _ALLOWED
    ]  # fmt: skip


PEER = Peer(
    name="torch", operation="beam_power", backends=("cuda",), precisions=tuple(_ALLOWED),
    algorithm=_algorithm, modules=("torch",), prepared=_prepared, precision=rounding,
)  # fmt: skip
