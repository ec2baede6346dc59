"""Tensors of torch in, tensors out: the public calls on views of them, without copies.

A CPU tensor is computed as a NumPy array and a CUDA tensor as a CuPy array over the same memory, on
torch's current stream; in a capture memory is torch's, so that its graph owns what kernels write.
Only calls that have a tensor import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from argand.checks import share_memory
from argand.framework import framework_of, name_of
from argand.frameworks.results import converted
from argand.frameworks.rules import ForeignCall
from argand.frameworks.torch_internals import INTERNALS
from argand.frameworks.torch_streams import let_cupy_wait, on_stream_of

OPERATORS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""Operators, of arrays and options, by the call that they make; `argand.torch_ops` has them."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Types of tensors that have memory, as have those derived of them that dispatch as they do."""


def call_on_tensors(
    call: ForeignCall, arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Return the result of a call as a tensor on the device of its tensors.

    The function gets views of them. bfloat16 becomes float32, or for functions with a ``format``
    the bits that they read; complex32 becomes `Pairs`, or complex64 where the call takes none. A
    tensor that is written is returned.

    Raises:
        TypeError: tensors on different devices or on one that is neither a CPU nor a CUDA GPU, and
            tensors that require a gradient where there are no ``rules``, or that are ``out``.
        ValueError: an ``out`` that is a conjugate or negative view.
    """
    compiling = torch.compiler.is_compiling()
    function, rules, written = call.function, call.rules, call.written
    if compiling and OPERATORS and not _is_operation(function, arrays):
        return _between_graphs(call, arrays, options)
    if compiling or _are_traced(arrays.values()):
        return _traced(function, arrays, options)

    def run(given: Mapping[str, Any]) -> Any:
        return _computed(call, given, options)

    differentiated = [name for name, x in {**options, **arrays}.items() if _is_differentiated(x)]
    if not differentiated:
        return run(arrays)
    first, has_out = differentiated[0], arrays.get("out") is not None
    if rules is None or has_out or first in options:
        what = "this call does not compute" + " of an out" * (rules is not None and has_out)
        raise TypeError(
            f"{first} requires a gradient, which {what}: detach it, or call within torch.no_grad()"
        )
    from argand.frameworks.torch_gradients import DifferentiableCall

    made = DifferentiableCall(run, function, rules, tuple(arrays), options)
    return made.in_place(arrays, written) if arrays.get(written) is not None else made.of(arrays)


def _is_operation(function: Callable[..., Any], arrays: Mapping[str, Any]) -> bool:
    """Return whether an operator makes this call: operators take no `Pairs` and no `Packed`."""
    return function in OPERATORS and all(
        x is None or isinstance(x, np.ndarray) or framework_of(x) == "torch"
        for x in arrays.values()
    )


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _between_graphs(*values: Any) -> Any:
    """Make a call that is no operator between two graphs that torch compiles."""
    return call_on_tensors(*values)


def _is_differentiated(x: Any) -> bool:
    """Return whether x is a tensor that requires a gradient or has a tangent."""
    if framework_of(x) != "torch":
        return False
    if x.requires_grad and torch.is_grad_enabled():
        return True
    if not (INTERNALS.may_have_tangents((x,)) and INTERNALS.is_forward()):
        return False
    return forward_ad.unpack_dual(x).tangent is not None


def _are_traced(arrays: Iterable[Any]) -> bool:
    """Return whether torch transforms this call or has it on tensors that may have no memory.

    It must not ask whether torch compiles: it may be compiled alone, when its caller is not.
    """
    arrays = tuple(arrays)
    if INTERNALS.are_transformed(arrays):
        return True
    return any(
        framework_of(x) == "torch" and (not _has_memory(type(x)) or INTERNALS.is_batched(x))
        for x in arrays
    )


def _has_memory(kind: Any) -> bool:
    """Return whether tensors of a type have memory; torch traces calls on others."""
    return kind in _PLAIN or kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def _traced(
    function: Callable[..., Any], arrays: Mapping[str, Any], options: Mapping[str, Any]
) -> Any:
    """Return the result of the operator that stands for a call in a graph of torch's."""
    if not OPERATORS:
        raise TypeError("torch traces this call: import argand.torch_ops before it")
    if function not in OPERATORS:
        allowed = sorted(call.__name__ for call in OPERATORS)
        kinds = sorted({type(x).__name__ for x in arrays.values() if framework_of(x) == "torch"})
        raise TypeError(f"torch can trace {allowed}, got {name_of(function)} of {', '.join(kinds)}")
    return OPERATORS[function](arrays, options)


def _computed(call: ForeignCall, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Return the result as a tensor, without a gradient."""
    written, pairs = call.written, call.pairs
    names = [name for name, x in arrays.items() if framework_of(x) == "torch"]
    device = _device_of({name: arrays[name] for name in names})
    given, options = dict(arrays), dict(options)
    out = given.get(written)
    finish = None if call.adapted is None else call.adapted(given, options)
    goal = given.get(written)
    if goal is not None and written in names:
        _check_written(written, goal)
    with on_stream_of(device):
        for name in names:
            x = given[name]
            if x.dtype == torch.bfloat16 and "format" in options:
                given[name] = _array(name, _resolved(x).view(torch.int16)).view(np.uint16)
                if name != written:
                    options["format"] = "bf16"
            else:
                given[name] = _view(name, x, pairs)
        found = call.function(**given, **options)
        if pairs is not None and isinstance(found, pairs):
            result = _half_tensor(found) if out is None else out
        elif out is None:
            result = converted(found, partial(_tensor, bf16=options.get("output") == "bf16"))
        else:
            result = converted(found, lambda _: out)
        if finish is not None:
            finish(result)
    if goal is not None and written in names:
        INTERNALS.note_written((goal,))
    if device.type == "cuda" and not isinstance(result, (torch.Tensor, tuple)):
        let_cupy_wait(device)
    return result


def _check_written(name: str, x: Any) -> None:
    """Raise ValueError for a tensor that a call cannot write to."""
    if x.is_conj() or x.is_neg():
        raise ValueError(f"{name} must not be a conjugate or negative view: resolve it first")
    if share_memory(x.shape, x.stride(), 1):
        raise ValueError(
            f"{name} must have memory for each of its numbers, got shape {tuple(x.shape)} and "
            f"strides {x.stride()}: clone it first"
        )


def _device_of(tensors: Mapping[str, Any]) -> Any:
    """Return the device of all these tensors, given by the names of arguments."""
    (first, x), *others = tensors.items()
    for name, other in others:
        if other.device != x.device:
            raise TypeError(
                f"tensors must be on one device, got {first} on {x.device}, "
                f"{name} on {other.device}"
            )
    if x.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{first} must be on a CPU or a CUDA GPU, got {x.device}")
    return x.device


def _view(name: str, x: Any, pairs: type | None) -> Any:
    x = _resolved(x)
    if x.dtype == torch.bfloat16:
        x = x.float()
    if x.dtype == torch.complex32:
        if pairs is None:
            return _array(name, x.to(torch.complex64))
        return pairs(_array(name, torch.view_as_real(x)), "fp16")
    return _array(name, x)


def _resolved(x: Any) -> Any:
    """Return a tensor without a gradient, whose numbers are those in memory."""
    if x.requires_grad:
        x = x.detach()
    return x.resolve_conj().resolve_neg() if x.is_conj() or x.is_neg() else x


TYPES = {
    getattr(torch, name): np.dtype(name)
    for name in ("float16", "float32", "float64", "complex64", "complex128", "bool", "uint8",
                 "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
}  # fmt: skip
"""The types that torch and NumPy share."""


def _array(name: str, x: Any) -> Any:
    """Return a tensor as an array over its memory: of NumPy on a CPU, of CuPy on a GPU.

    Raises TypeError that has the argument's name.
    """
    dtype = TYPES.get(x.dtype)
    if dtype is None or x.layout != torch.strided or x.is_nested:
        kind = "nested tensors" if x.is_nested else x.layout
        allowed = ", ".join(map(str, (*TYPES, torch.bfloat16, torch.complex32)))
        raise TypeError(f"{name} must be strided and of one of {allowed}, got {kind} of {x.dtype}")
    if not x.data_ptr() and x.numel():
        raise TypeError(f"{name} has no memory for its {x.numel()} numbers: its storage was freed")
    if x.device.type == "cpu":
        return x.numpy()
    import cupy

    item = dtype.itemsize
    memory = cupy.cuda.UnownedMemory(x.data_ptr(), x.numel() * item, x, x.device.index)
    strides = tuple([stride * item for stride in x.stride()])
    return cupy.ndarray(x.shape, dtype, cupy.cuda.MemoryPointer(memory, 0), strides)


def _half_tensor(found: Any) -> Any:
    """Return complex32 of `Pairs` of fp16, and both parts of bf16, which has no complex type."""
    parts = _tensor(found.array, bf16=found.format == "bf16")
    if found.format != "fp16":
        return parts
    if not parts.numel():  # its strides may be such that torch makes no complex tensor of it
        return parts.new_empty(parts.shape[:-1], dtype=torch.complex32)
    return torch.view_as_complex(parts)


def _tensor(found: Any, *, bf16: bool) -> Any:
    if isinstance(found, np.ndarray):
        whole = found if all(stride >= 0 for stride in found.strides) else found.copy()
        tensor = torch.from_numpy(whole.view(np.int16) if bf16 else whole)
    else:
        tensor = torch.from_dlpack(found.view(np.int16) if bf16 else found)
    return tensor.view(torch.bfloat16) if bf16 else tensor
