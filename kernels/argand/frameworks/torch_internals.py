"""Functions that torch has without a public name, and public ones where a version has them not.

The internal ones save the host microseconds of a call. A version of torch may rename or drop them:
then the public functions say the same, and calls take longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, NamedTuple

import torch


class TorchInternals(NamedTuple):
    """The functions of torch that the calls use.

    Attributes:
        raw_stream: the address of the current stream of a GPU, given by its index.
        is_capturing: whether the current stream is captured.
        are_transformed: whether torch.func transforms a call on these arguments.
        any_requires_grad: whether some of these arguments require a gradient.
        autograd_impl: the implementation of an operator, given with its backward and its
            ``setup_context``, under autograd; None where only ``torch.library.register_autograd``
            makes one.
    """

    raw_stream: Callable[[int], int]
    is_capturing: Callable[[], bool]
    are_transformed: Callable[[Iterable[Any]], bool]
    any_requires_grad: Callable[..., bool]
    autograd_impl: Callable[[Any, Any, Any], Callable[..., Any]] | None


_AUTOGRAD = "torch._library.autograd"


def torch_internals(compiled: Any = torch._C, autograd: str = _AUTOGRAD) -> TorchInternals:
    """Return torch's functions from these modules; public ones, with a warning, where they lack.

    ``compiled`` is ``torch._C`` and ``autograd`` the name of a module, or in tests what another
    version might have.
    """
    missing = []

    def chosen(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        found: Callable[..., Any] | None = getattr(compiled, name, None)
        if found is None and (torch.version.cuda or "_cuda" not in name):
            missing.append(f"torch._C.{name}")
        return found or otherwise

    active = chosen("_are_functorch_transforms_active", _never)
    made = _autograd_impl(autograd)
    if made is None:
        missing.append(autograd)
    found = TorchInternals(
        chosen("_cuda_getCurrentRawStream", _stream_of),
        chosen("_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing),
        _without_memory if active is _never else lambda _: active(),
        chosen("_any_requires_grad", _any_requires_grad),
        made,
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


def _autograd_impl(module: str) -> Callable[[Any, Any, Any], Callable[..., Any]] | None:
    """Return what torch.library.register_autograd makes, where that can be had."""
    try:
        found = import_module(module)
        info, make = found.Info, found.make_autograd_impl
    except (ImportError, AttributeError):
        return None
    return lambda operator, backward, keep: make(operator, info(backward, keep))


INTERNALS = torch_internals()
"""Those of the torch that is installed."""
