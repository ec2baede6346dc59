"""Functions that torch has without a public name, and public ones where a version has them not.

The internal ones save the host microseconds of a call. A version of torch may rename or drop them:
then the public functions say the same, and calls take longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad


class TorchInternals(NamedTuple):
    """The functions of torch that the calls use.

    Attributes:
        raw_stream: the address of the current stream of a GPU, given by its index.
        is_capturing: whether the current stream is captured.
        are_transformed: whether torch.func transforms a call on these arguments, or `torch.jit` or
            make_fx record what it does to them.
        may_have_tangents: whether some of these arguments may have one, of forward mode.
        are_followed: whether one of the two is so.
        pass_unseen: whether `are_followed` may hold for arguments that `check_of` passes. A check
            detects all but forward mode and the dispatch modes that record, such as make_fx's.
        any_requires_grad: whether some of these arguments require a gradient.
        is_forward: whether torch computes tangents here: it leaves forward mode within a
            gradient's own functions.
        forward: makes a context in which it does, or does not.
        is_batched: whether a tensor is of a batch whose gradients are computed at once,
            ``torch.autograd.grad(is_grads_batched=)``.
        below_autograd: makes a context in which operators are called as without gradients; None
            where there is no such function.
        check_of: from tensors a function that returns whether others are of their types, shapes,
            strides and devices, conjugate, negative and requiring gradients as they are, within the
            same contexts of torch.
        note_written: tells autograd that kernels wrote to these tensors, so that a gradient which
            needs what they held before is refused, as after torch's own writes.
    """

    raw_stream: Callable[[int], int]
    is_capturing: Callable[[], bool]
    are_transformed: Callable[[Iterable[Any]], bool]
    may_have_tangents: Callable[[Iterable[Any]], bool]
    are_followed: Callable[[Iterable[Any]], bool]
    pass_unseen: Callable[[Iterable[Any]], bool]
    any_requires_grad: Callable[..., bool]
    is_forward: Callable[[], bool]
    forward: Callable[[bool], AbstractContextManager[Any]]
    is_batched: Callable[[Any], bool]
    below_autograd: Callable[[], AbstractContextManager[Any]] | None
    check_of: Callable[[Sequence[Any]], Callable[..., bool]]
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
    levels = ("_current_level", "_is_fwd_grad_enabled", "_set_fwd_grad_enabled")
    missing += [f"torch.autograd.forward_ad.{x}" for x in levels if not hasattr(forward, x)]
    guards = getattr(getattr(compiled, "_dynamo", None), "guards", None)
    if not hasattr(guards, "TensorGuards"):
        missing.append("torch._C._dynamo.guards.TensorGuards")
    batched = getattr(getattr(compiled, "_functorch", None), "is_legacy_batchedtensor", None)
    if batched is None:
        missing.append("torch._C._functorch.is_legacy_batchedtensor")
        batched = _has_none
    recorded = chosen("_is_tracing", torch.jit.is_tracing)
    proxies = chosen("_get_dispatch_mode", _mode_of_proxies)
    if proxies is not _mode_of_proxies:
        proxies = partial(proxies, compiled._TorchDispatchModeKey.PROXY)

    def transformed(given: Iterable[Any]) -> bool:
        inside = _without_memory(given) if active is _never else active()
        return inside or recorded() or proxies() is not None

    modes = chosen("_len_torch_dispatch_stack", _never)
    tangents = (lambda _: forward._current_level >= 0) if followed else _have_tangents
    # One function tests for both, because each call on tensors does.
    follows = (
        (lambda _: active() or forward._current_level >= 0 or recorded() or proxies() is not None)
        if followed and active is not _never
        else (lambda given: transformed(given) or tangents(given))
    )
    checked = followed and modes is not _never and hasattr(guards, "TensorGuards")
    found = TorchInternals(
        raw_stream=chosen("_cuda_getCurrentRawStream", _stream_of),
        is_capturing=chosen(
            "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing
        ),
        are_transformed=transformed,
        may_have_tangents=tangents,
        are_followed=follows,
        pass_unseen=(
            (lambda _: forward._current_level >= 0 or modes() > 0) if checked else follows
        ),
        any_requires_grad=chosen("_any_requires_grad", _any_requires_grad),
        is_forward=getattr(forward, "_is_fwd_grad_enabled", lambda: True),
        forward=getattr(forward, "_set_fwd_grad_enabled", nullcontext),
        is_batched=batched,
        below_autograd=None if below is _never else below,
        check_of=partial(_guard_of, guards) if hasattr(guards, "TensorGuards") else _look_of,
        note_written=chosen("_increment_version", torch.autograd.graph.increment_version),
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


def _mode_of_proxies() -> Any:
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return get_proxy_mode()


def _without_memory(given: Iterable[Any]) -> bool:
    """Return whether some tensor has no memory: those that torch.func wraps have none."""
    return any(isinstance(x, torch.Tensor) and _has_none(x) for x in given)


def _has_none(x: Any) -> bool:
    try:
        x.data_ptr()
    except RuntimeError:
        return True
    return False


def _any_requires_grad(*values: Any, **named: Any) -> bool:
    return any(getattr(x, "requires_grad", False) for x in (*values, *named.values()))


def _guard_of(guards: Any, given: Sequence[Any]) -> Callable[..., bool]:
    """Return `check_of`, in one call of C++ in place of five looks at each tensor."""
    first = [next(at for at, y in enumerate(given) if y is x) for x in given]
    several = sorted(set(first))
    made = [given[at] for at in several]
    guard: Callable[..., bool] = guards.TensorGuards(
        *made,
        dynamic_dims_sizes=[list(x.shape) for x in made],
        dynamic_dims_strides=[list(x.stride()) for x in made],
    ).check
    again = [(at, before) for at, before in enumerate(first) if at != before]
    if not again:
        return guard
    take = itemgetter(*several) if len(several) > 1 else itemgetter(slice(1))

    def check(*others: Any) -> bool:  # a guard takes no tensor twice
        for at, before in again:
            if others[at] is not others[before]:
                return False
        return guard(*take(others))

    return check


def _look_of(given: Sequence[Any]) -> Callable[..., bool]:
    expected = [_looked(x) for x in given]
    return lambda *others: [_looked(x) for x in others] == expected


def _looked(x: Any) -> tuple[Any, ...]:
    return (
        type(x), x.dtype, x.device, x.shape, x.stride(), x.requires_grad, x.is_conj(), x.is_neg(),
        torch.is_inference_mode_enabled(),
    )  # fmt: skip


def _have_tangents(given: Iterable[Any]) -> bool:
    tensors = (x for x in given if isinstance(x, torch.Tensor))
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


INTERNALS = torch_internals()
"""Those of the torch that is installed."""
