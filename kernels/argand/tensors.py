"""Tensors of torch in, tensors out: the public calls on views of them, without copies.

A CPU tensor is computed as a NumPy array and a CUDA tensor as a CuPy array over the same memory, on
torch's current stream. Nothing here imports torch before a call has a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

_OF_TORCH: dict[type, bool] = {}


def is_tensor(x: object) -> bool:
    """Whether ``x`` is a tensor of torch, by a look at its type alone."""
    known = _OF_TORCH.get(type(x))
    if known is None:
        name = type(x).__module__.partition(".")[0]
        known = _OF_TORCH[type(x)] = name == "torch" and hasattr(x, "is_conj")
    return known


def has_tensors(*arrays: object) -> bool:
    """Whether some of these are tensors of torch."""
    return any(map(is_tensor, arrays))


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
    import torch

    tensors = {name: x for name, x in arrays.items() if is_tensor(x)}
    devices = {str(x.device): x.device for x in tensors.values()}
    if len(devices) > 1:
        raise TypeError(f"tensors must be on one device, got {sorted(devices)}")
    ((_, device),) = devices.items()
    if device.type not in ("cpu", "cuda"):
        raise TypeError(f"tensors must be on a CPU or a CUDA GPU, got {device}")
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
            given = {
                name: x if name not in tensors else _bits(tensors[name], pairs)
                for name, x in given.items()
            }
        found = function(**given, **options)
        if written in tensors:
            return tensors[written]
        if pairs is not None and isinstance(found, pairs):
            return _half_tensor(found)
        return _tensor(found, bf16=options.get("output") == "bf16")


@contextmanager
def _on_stream_of(device: Any) -> Iterator[None]:
    """Make a CUDA device and torch's stream of it CuPy's current ones; nothing on a CPU."""
    if device.type == "cpu":
        yield
        return
    import cupy
    import torch

    stream = _Handle(torch.cuda.current_stream(device).cuda_stream)
    with cupy.cuda.Device(device.index), cupy.cuda.Stream.from_external(stream):
        yield


class _Handle:
    """A stream by CUDA's stream protocol: its version and the address."""

    def __init__(self, address: int) -> None:
        self._address = address

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._address


def _view(x: Any, pairs: type | None) -> Any:
    import torch

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
    import torch

    x = x.detach()
    if x.dtype != torch.bfloat16:
        return _view(x, pairs)
    return _array(x.view(torch.int16)).view(np.uint16)


def _array(x: Any) -> Any:
    if x.device.type == "cpu":
        return x.numpy()
    import cupy

    return cupy.from_dlpack(x)


def _half_tensor(found: Any) -> Any:
    """complex32 of `Pairs` of fp16; of bf16, which torch has no complex type of, both parts."""
    import torch

    parts = _tensor(found.array, bf16=found.format == "bf16")
    return torch.view_as_complex(parts) if found.format == "fp16" else parts


def _tensor(found: Any, *, bf16: bool) -> Any:
    import torch

    if isinstance(found, np.ndarray):
        whole = found if all(stride >= 0 for stride in found.strides) else found.copy()
        tensor = torch.from_numpy(whole.view(np.int16) if bf16 else whole)
    else:
        tensor = torch.from_dlpack(found.view(np.int16) if bf16 else found)
    return tensor.view(torch.bfloat16) if bf16 else tensor
