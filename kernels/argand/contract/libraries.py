"""NumPy's functions and types in the library of a contraction's arrays: CuPy, torch or JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.device import array_module, is_cupy_array
from argand.framework import framework_of


def namespace(x: Any) -> Any:
    """Return the functions of the library of an array, by NumPy's names."""
    framework = framework_of(x)
    if framework == "torch":
        return _Torch(x)
    if framework == "jax":
        import jax.numpy

        return jax.numpy
    return array_module(x)


class _Torch:
    """The functions of NumPy that torch has under other names."""

    def __init__(self, like: Any) -> None:
        import torch

        self._torch, self._device = torch, like.device
        self.iscomplexobj, self.broadcast_to = torch.is_complex, torch.broadcast_to
        self.promote_types = torch.promote_types

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return self._torch.as_tensor(x, dtype=dtype, device=self._device)


def beside(like: Any, x: Any, name: str) -> Any:
    """Return a scale or bias for the library and device of an operand, where it is NumPy's.

    Raises TypeError for a tensor of torch beside operands of another library.
    """
    framework = framework_of(like)
    if framework_of(x) == "torch" != framework:
        library = type(like).__module__.partition(".")[0]
        raise TypeError(f"{name} is a tensor of torch, but the operands are arrays of {library}")
    if not isinstance(x, np.ndarray):
        return x
    if framework == "torch":  # which reads no strides below 0 and no other byte order
        return namespace(like).asarray(x.astype(x.dtype.newbyteorder("="), order="C"))
    if not is_cupy_array(like):
        return x
    from argand.runtime.memory.device_table import stream_table

    return stream_table(x)


def type_like(x: Any, kind: str, *, double: bool) -> Any:
    """Return the type ``"float"`` or ``"complex"`` of fp32's or fp64's parts, of x's library.

    JAX's is that of fp32 where it has no fp64.
    """
    bits = (32 if kind == "float" else 64) << double
    framework = framework_of(x)
    if framework == "torch":
        import torch

        return getattr(torch, f"{kind}{bits}")
    if framework == "jax":
        import jax

        return jax.dtypes.canonicalize_dtype(f"{kind}{bits}")
    return np.dtype(f"{kind}{bits}")


def type_in(x: Any, dtype: Any) -> Any:
    """Return a type, of any library, as one of x's library. Raises TypeError where it has none."""
    of_torch = hasattr(dtype, "is_complex")
    if framework_of(x) != "torch":
        return np.dtype(str(dtype).removeprefix("torch.") if of_torch else dtype)
    if of_torch:
        return dtype
    import torch

    name = np.dtype(dtype).name
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"dtype must be a type of torch, got {name}")
    return found


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter of a type's kind of numbers; a torch type has none of its own."""
    if hasattr(dtype, "is_complex"):
        return "c" if dtype.is_complex else "f" if dtype.is_floating_point else "i"
    return str(dtype.kind)


def converted(x: Any, dtype: Any) -> Any:
    """Return an array in another type of its library."""
    return x.astype(dtype) if hasattr(x, "astype") else x.to(dtype)
