"""Tensors of torch in, tensors out: the public calls on views of them, without copies.

A CPU tensor is computed as a NumPy array and a CUDA tensor as a CuPy array over the same memory, on
torch's current stream and in memory of torch's allocator, so that graphs that torch captures own
what their kernels write. Only calls that have a tensor import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

from argand.frameworks.foreign import framework_of


def call_on_tensors(
    function: Callable[..., Any],
    arrays: Mapping[str, Any],
    *,
    written: str = "out",
    pairs: type | None = None,
    **options: Any,
) -> Any:
    """Return what a function of NumPy or CuPy arrays returns, as a tensor on the device of these.

    Args:
        function: called with ``arrays``, which are views of the tensors, and ``options``.
        arrays: by the names of its arguments. bfloat16 becomes float32, or for functions with a
            ``format`` the bits that they read; complex32 becomes complex64 without ``pairs``.
        written: the argument that the function writes to; if it is a tensor, it is returned.
        pairs: `argand.Pairs` where the function takes and returns them: those of complex32.

    Raises:
        TypeError: tensors on different devices or on one that is neither a CPU nor a CUDA GPU, and
            tensors that require a gradient outside of ``torch.no_grad()``.
        ValueError: a ``written`` tensor that is a conjugate or negative view.
    """
    tensors = {name: x for name, x in arrays.items() if framework_of(x) == "torch"}
    device = _device_of(tensors.values())
    for name, x in tensors.items():
        if x.requires_grad and torch.is_grad_enabled():
            raise TypeError(
                f"{name} requires a gradient, which argand does not compute: detach it, or call "
                "within torch.no_grad()"
            )
        if name == written and (x.is_conj() or x.is_neg()):
            raise ValueError(f"{name} must not be a conjugate or negative view: resolve it first")
    with _on_stream_of(device):
        given = {name: x if name not in tensors else _view(x, pairs) for name, x in arrays.items()}
        if "format" in options and any(x.dtype == torch.bfloat16 for x in tensors.values()):
            options["format"] = "bf16"
            given |= {name: _bits(x, pairs) for name, x in tensors.items()}
        found = function(**given, **options)
        if written in tensors:
            return tensors[written]
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
