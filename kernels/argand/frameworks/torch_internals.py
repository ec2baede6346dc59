"""Functions of torch without a public name, and public ones in place of those that a version lacks.

The internal functions save the host microseconds of a call. A version of torch may rename or drop
them: then public functions give the same answers, and calls take longer.
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
        is_batched: whether a tensor belongs to a batch whose gradients are computed at once,
            ``torch.autograd.grad(is_grads_batched=)``.
        below_autograd: makes a context in which operators are called as without gradients; None
            where there is no such function.
        check_of: returns for tensors a function that says whether others have their types, shapes,
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


class _Names:
    """Finds functions of torch's modules by name, and keeps the names that are missing."""

    def __init__(self) -> None:
        self.missing: list[str] = []

    def find(self, module: Any, place: str, name: str) -> Any:
        """Return the object with this dotted name in a module; None where there is none.

        A missing function of CUDA is not noted where torch was built without CUDA.
        """
        found = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None and (torch.version.cuda or "_cuda" not in name):
            self.missing.append(f"{place}.{name}")
        return found


def torch_internals(compiled: Any = torch._C, forward: Any = forward_ad) -> TorchInternals:
    """Return torch's functions from these modules, with public ones in place of missing ones.

    It warns where some are missing. Tests pass modules as another version might have them.
    """
    names = _Names()
    internal = partial(names.find, compiled, "torch._C")
    of_forward_mode = partial(names.find, forward, "torch.autograd.forward_ad")
    transforms = internal("_are_functorch_transforms_active")
    tensor_guards = internal("_dynamo.guards.TensorGuards")
    has_levels = of_forward_mode("_current_level") is not None
    followers = _followers(
        internal, compiled, transforms, forward if has_levels else None, tensor_guards is not None
    )
    found = TorchInternals(
        **followers._asdict(),
        raw_stream=internal("_cuda_getCurrentRawStream") or _stream_of,
        is_capturing=internal("_cuda_isCurrentStreamCapturing")
        or torch.cuda.is_current_stream_capturing,
        any_requires_grad=internal("_any_requires_grad") or _any_requires_grad,
        is_forward=of_forward_mode("_is_fwd_grad_enabled") or (lambda: True),
        forward=of_forward_mode("_set_fwd_grad_enabled") or nullcontext,
        is_batched=internal("_functorch.is_legacy_batchedtensor") or _has_none,
        below_autograd=internal("_AutoDispatchBelowAutograd"),
        check_of=_look_of if tensor_guards is None else partial(_guard_of, tensor_guards),
        note_written=internal("_increment_version") or torch.autograd.graph.increment_version,
    )
    if names.missing:
        warnings.warn(
            f"torch {torch.__version__} has no {', '.join(names.missing)}: public functions take "
            "their place, and calls on tensors take the host longer",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


_OfArguments = Callable[[Iterable[Any]], bool]


class _Followers(NamedTuple):
    """The functions of `TorchInternals` that tell what torch does with a call's arguments."""

    are_transformed: _OfArguments
    may_have_tangents: _OfArguments
    are_followed: _OfArguments
    pass_unseen: _OfArguments


def _followers(
    internal: Callable[[str], Any], compiled: Any, transforms: Any, forward: Any, has_guards: bool
) -> _Followers:
    """Return the functions that tell whether torch transforms, records or differentiates a call.

    Args:
        internal: returns torch's internal function of a name, or None.
        compiled: the module of these functions.
        transforms: tells whether torch.func transforms a call; None where torch does not tell.
        forward: the module of forward mode; None where it does not tell its level.
        has_guards: whether `_guard_of` makes the checks.
    """
    is_tracing = internal("_is_tracing") or torch.jit.is_tracing
    mode_of = internal("_get_dispatch_mode")
    proxies = _mode_of_proxies
    if mode_of is not None:
        proxies = partial(mode_of, compiled._TorchDispatchModeKey.PROXY)
    count_modes = internal("_len_torch_dispatch_stack")

    def are_transformed(given: Iterable[Any]) -> bool:
        inside = _without_memory(given) if transforms is None else transforms()
        return inside or is_tracing() or proxies() is not None

    may_have_tangents: _OfArguments = (
        _have_tangents if forward is None else (lambda _: forward._current_level >= 0)
    )
    are_followed: _OfArguments = (
        (lambda given: are_transformed(given) or may_have_tangents(given))
        if forward is None or transforms is None
        # In one function, because each call on tensors asks.
        else (
            lambda _: (
                transforms() or forward._current_level >= 0 or is_tracing() or proxies() is not None
            )
        )
    )
    pass_unseen: _OfArguments = (
        (lambda _: forward._current_level >= 0 or count_modes() > 0)
        if forward is not None and count_modes is not None and has_guards
        else are_followed
    )
    return _Followers(are_transformed, may_have_tangents, are_followed, pass_unseen)


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


def _guard_of(tensor_guards: Any, given: Sequence[Any]) -> Callable[..., bool]:
    """Return `check_of`, one call of C++ in place of five properties of each tensor."""
    first = [next(at for at, y in enumerate(given) if y is x) for x in given]
    several = sorted(set(first))
    made = [given[at] for at in several]
    guard: Callable[..., bool] = tensor_guards(
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
"""The functions of the torch that is installed."""
