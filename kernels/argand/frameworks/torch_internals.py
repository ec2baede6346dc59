"""Functions that torch has without a public name, and public ones where a version has them not.

The internal ones save the host microseconds of a call. A version of torch may rename or drop them:
then the public functions say the same, and calls take longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad


class TorchInternals(NamedTuple):
    """The functions of torch that the calls use.

    Attributes:
        raw_stream: the address of the current stream of a GPU, given by its index.
        is_capturing: whether the current stream is captured.
        are_transformed: whether torch.func transforms a call on these arguments.
        may_have_tangents: whether some of these arguments may have one, of forward mode.
        are_followed: whether one of the two is so.
        any_requires_grad: whether some of these arguments require a gradient.
        below_autograd: makes a context in which operators are called as without gradients; None
            where there is no such function.
        note_written: tells autograd that kernels wrote to these tensors, so that a gradient which
            needs what they held before is refused, as after torch's own writes.
    """

    raw_stream: Callable[[int], int]
    is_capturing: Callable[[], bool]
    are_transformed: Callable[[Iterable[Any]], bool]
    may_have_tangents: Callable[[Iterable[Any]], bool]
    are_followed: Callable[[Iterable[Any]], bool]
    any_requires_grad: Callable[..., bool]
    below_autograd: Callable[[], AbstractContextManager[Any]] | None
    note_written: Callable[[tuple[Any, ...]], None]


def torch_internals(compiled: Any = torch._C, forward: Any = forward_ad) -> TorchInternals:
    """Return torch's functions from these modules; public ones, with a warning, where they lack.

    In tests the modules are what another version might have.
    """
    missing = []

    def chosen(name: str, otherwise: Callable[..., Any]) -> Any:
        found = getattr(compiled, name, None)
        if found is None and (torch.version.cuda or "_cuda" not in name):
            missing.append(f"torch._C.{name}")
        return found or otherwise

    active = chosen("_are_functorch_transforms_active", _never)
    below = chosen("_AutoDispatchBelowAutograd", _never)
    followed = hasattr(forward, "_current_level")
    if not followed:
        missing.append("torch.autograd.forward_ad._current_level")
    transformed = _without_memory if active is _never else lambda _: active()
    tangents = (lambda _: forward._current_level >= 0) if followed else _have_tangents
    found = TorchInternals(
        chosen("_cuda_getCurrentRawStream", _stream_of),
        chosen("_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing),
        transformed,
        tangents,
        # One look for both, in each call on tensors.
        (lambda _: active() or forward._current_level >= 0)
        if followed and active is not _never
        else (lambda given: transformed(given) or tangents(given)),
        chosen("_any_requires_grad", _any_requires_grad),
        None if below is _never else below,
        chosen("_increment_version", torch.autograd.graph.increment_version),
    )
    if missing:
        warnings.warn(
            f"torch {torch.__version__} has no {', '.join(missing)}: public functions take their "
            "place, and calls on tensors take the host longer",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


def _never() -> bool:
    return False


def _stream_of(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)


def _without_memory(given: Iterable[Any]) -> bool:
    """Return whether some tensor has no memory: those that torch.func wraps have none."""
    for x in given:
        if isinstance(x, torch.Tensor):
            try:
                x.data_ptr()
            except RuntimeError:
                return True
    return False


def _any_requires_grad(*values: Any, **named: Any) -> bool:
    return any(getattr(x, "requires_grad", False) for x in (*values, *named.values()))


def _have_tangents(given: Iterable[Any]) -> bool:
    tensors = (x for x in given if isinstance(x, torch.Tensor))
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


INTERNALS = torch_internals()
"""Those of the torch that is installed."""
