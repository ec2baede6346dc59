"""Tensors of torch in, tensors out: the public calls on views of them, without copies.

A CPU tensor is computed as a NumPy array and a CUDA tensor as a CuPy array over the same memory, on
torch's current stream and in memory of torch's allocator, so that graphs that torch captures own
what their kernels write. Only calls that have a tensor import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

from argand.frameworks.foreign import framework_of
from argand.frameworks.rules import FrameworkRules

OPERATORS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""Operators, of arrays and options, by the call that they make; `argand.torch_ops` has them."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Types of tensors that have memory; torch traces calls on others."""


def call_on_tensors(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    *,
    rules: FrameworkRules | None = None,
    written: str = "out",
    pairs: type | None = None,
    **options: Any,
) -> Any:
    """Return what a function of NumPy or CuPy arrays returns, as a tensor on the device of these.

    Args:
        function: called with ``arrays``, which are views of the tensors, and ``options``.
        arrays: by the names of its arguments. bfloat16 becomes float32, or for functions with a
            ``format`` the bits that they read; complex32 becomes complex64 without ``pairs``.
        rules: of its result, where tensors may require gradients.
        written: the argument that the function writes to; if it is a tensor, it is returned.
        pairs: `argand.Pairs` where the function takes and returns them: those of complex32.
        options: its other arguments.

    Raises:
        TypeError: tensors on different devices or on one that is neither a CPU nor a CUDA GPU, and
            tensors that require a gradient where there are no ``rules``, or that are ``out``.
        ValueError: a ``written`` tensor that is a conjugate or negative view.
    """
    if _are_traced(arrays.values()):
        return _traced(function, arrays, options)

    def run(given: Mapping[str, Any]) -> Any:
        return _computed(function, given, rules, written, pairs, options)

    differentiated = [name for name, x in arrays.items() if framework_of(x) == "torch"
                      and x.requires_grad] if torch.is_grad_enabled() else []  # fmt: skip
    if not differentiated:
        return run(arrays)
    if rules is None or arrays.get("out") is not None:
        raise TypeError(
            f"{differentiated[0]} requires a gradient, which this call does not compute"
            f"{' of an out' if rules else ''}: detach it, or call within torch.no_grad()"
        )
    from argand.frameworks.torch_gradients import call_with_gradients

    changed = written if arrays.get(written) is not None else None
    return call_with_gradients(run, function, rules, arrays, options, changed)


def _are_traced(arrays: Iterable[Any]) -> bool:
    """Whether torch traces this call, so that there is nothing to compute yet."""
    if torch.compiler.is_compiling():
        return True
    return any(framework_of(x) == "torch" and type(x) not in _PLAIN for x in arrays)


def _traced(
    function: Callable[..., Any], arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Return the result of the operator that stands for a call in a graph of torch's."""
    if not OPERATORS:
        raise TypeError("torch traces this call: import argand.torch_ops before it")
    if function not in OPERATORS:
        allowed = sorted(call.__name__ for call in OPERATORS)
        raise TypeError(f"torch can trace {allowed}, got {function.__name__}")
    return OPERATORS[function](arrays, options)


def _computed(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    rules: FrameworkRules | None,
    written: str,
    pairs: type | None,
    options: Mapping[str, Any],
) -> Any:
    """Return the result as a tensor, without a gradient."""
    tensors = {name: x for name, x in arrays.items() if framework_of(x) == "torch"}
    device = _device_of(tensors.values())
    out = tensors.get(written)
    if out is not None and (out.is_conj() or out.is_neg()):
        raise ValueError(f"{written} must not be a conjugate or negative view: resolve it first")
    given, options = dict(arrays), dict(options)
    if rules is not None and rules.adapted is not None:
        rules.adapted(given, options)
    with _on_stream_of(device):
        half = "format" in options and any(x.dtype == torch.bfloat16 for x in tensors.values())
        for name in tensors:
            given[name] = (_bits if half else _view)(given[name], pairs)
        if half:
            options["format"] = "bf16"
        found = function(**given, **options)
        if out is not None:
            return out
        if pairs is not None and isinstance(found, pairs):
            return _half_tensor(found)
        return _tensor(found, bf16=options.get("output") == "bf16")


def _device_of(tensors: Any) -> Any:
    """Return the device of all these tensors."""
    devices = {x.device for x in tensors}
    if len(devices) > 1:
        raise TypeError(f"tensors must be on one device, got {sorted(map(str, devices))}")
    device = devices.pop()
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"tensors must be on a CPU or a CUDA GPU, got {device}")
    return device


@contextmanager
def _on_stream_of(device: Any) -> Iterator[None]:
    """Make a CUDA device, torch's stream and its allocator CuPy's current ones; not on a CPU."""
    if device.type == "cpu":
        yield
        return
    import cupy

    stream = _stream(torch.cuda.current_stream(device).cuda_stream)
    with cupy.cuda.Device(device.index), stream, cupy.cuda.using_allocator(_torch_memory()):
        yield


@cache
def _stream(address: int) -> Any:
    """Return a stream of torch's as CuPy's; addresses are few, because torch pools its streams."""
    import cupy

    return cupy.cuda.Stream.from_external(_Handle(address))


class _Handle:
    """A stream by CUDA's stream protocol: its version and the address."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


@cache
def _torch_memory() -> Any:
    """Return an allocator of CuPy's that takes memory from torch's."""
    import cupy

    def allocate(size: int, device: int) -> int:
        stream = cupy.cuda.get_current_stream().ptr
        return int(torch.cuda.caching_allocator_alloc(size, device, stream)) if size else 0

    def free(address: int, _device: int) -> None:
        if address:
            torch.cuda.caching_allocator_delete(address)

    return cupy.cuda.PythonFunctionAllocator(allocate, free).malloc


def _view(x: Any, pairs: type | None) -> Any:
    x = x.detach().resolve_conj().resolve_neg()
    if x.dtype == torch.bfloat16:
        x = x.float()
    if x.dtype == torch.complex32:
        if pairs is None:
            return _array(x.to(torch.complex64))
        return pairs(_array(torch.view_as_real(x)), "fp16")
    return _array(x)


def _bits(x: Any, pairs: type | None) -> Any:
    """The bits of bfloat16 as uint16, anything else as `_view` has it."""
    x = x.detach()
    if x.dtype != torch.bfloat16:
        return _view(x, pairs)
    return _array(x.view(torch.int16)).view(np.uint16)


def _array(x: Any) -> Any:
    """Return a tensor as an array over its memory: of NumPy on a CPU, of CuPy on a GPU."""
    if x.device.type == "cpu":
        return x.numpy()
    import cupy

    return cupy.from_dlpack(x)


def _half_tensor(found: Any) -> Any:
    """complex32 of `Pairs` of fp16; of bf16, which torch has no complex type of, both parts."""
    parts = _tensor(found.array, bf16=found.format == "bf16")
    return torch.view_as_complex(parts) if found.format == "fp16" else parts


def _tensor(found: Any, *, bf16: bool) -> Any:
    if isinstance(found, np.ndarray):
        whole = found if all(stride >= 0 for stride in found.strides) else found.copy()
        tensor = torch.from_numpy(whole.view(np.int16) if bf16 else whole)
    else:
        tensor = torch.from_dlpack(found.view(np.int16) if bf16 else found)
    return tensor.view(torch.bfloat16) if bf16 else tensor
