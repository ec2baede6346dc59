"""The libraries that a softmax on a GPU is compared with: PyTorch, and Triton's fused kernel."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from argand import PRECISIONS

from benchmarks.harness.measuring import Candidate, CannotRunError

_FP32 = PRECISIONS["fp32"]


def candidates(kind: str, output: str) -> list[Candidate]:
    """PyTorch on every kind, the power of complex numbers in a step of its own; Triton on reals."""
    found = [
        Candidate(
            "torch", _FP32, f"softmax of {kind}", lambda x: (_tensor(x, kind),), _torch,
            _array, input=kind, output=output,
        )
    ]  # fmt: skip
    if find_spec("triton") and kind in ("fp32", "fp16"):
        found.append(
            Candidate(
                "triton", _FP32, "one pass, a program a row", lambda x: _prepare(x, kind), _triton,
                _array, input=kind, output=output, chosen=_warps,
            )
        )  # fmt: skip
    return found


def _tensor(x: Any, kind: str) -> Any:
    found = torch.from_dlpack(x).clone()
    return found.view(torch.bfloat16) if kind == "bf16" else found


def _torch(x: Any) -> Any:
    if x.is_complex():
        x = torch.view_as_real(x).square().sum(-1)
    return torch.softmax(x, -1)


def _array(x: Any) -> Any:
    import cupy

    return cupy.from_dlpack(x.view(torch.uint16) if x.dtype == torch.bfloat16 else x)


def _prepare(x: Any, kind: str) -> tuple[Any, ...]:
    from benchmarks.peers import _triton_softmax as triton_softmax

    given = _tensor(x, kind)
    out = torch.full_like(given, float("nan"))
    try:
        warps = triton_softmax.best_warps(given, out)
    except triton_softmax.triton.runtime.errors.OutOfResources as error:
        raise CannotRunError(str(error)) from None
    return given, out, warps


def _triton(x: Any, out: Any, warps: int) -> Any:
    from benchmarks.peers import _triton_softmax as triton_softmax

    triton_softmax.softmax(x, out, warps)
    return out


def _warps(_x: Any, _out: Any, warps: int) -> str:
    return f"{warps} warps"
