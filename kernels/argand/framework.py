"""The library that an argument belongs to, by its type, without an import of that library."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

Framework = Literal["torch", "jax", "exchange", "masked"]
"""Torch's tensors, JAX's arrays, arrays of other libraries that can be exchanged (they have
``__cuda_array_interface__`` or DLPack's methods), and NumPy's masked arrays."""
_OWN = ("numpy", "cupy", "builtins", "argand")
"""Libraries whose objects the calls take as they are."""
KNOWN: dict[type, Framework | None] = {}
"""The framework of each type that was seen."""


def framework_of(x: object) -> Framework | None:
    """Return the framework of an argument; None of NumPy's and CuPy's arrays, lists and ours."""
    kind = type(x)
    try:
        return KNOWN[kind]
    except KeyError:
        found = _found_framework(x, kind)
        if not str(kind.__module__).startswith("torch._"):  # see `argand.device.is_cupy_array`
            KNOWN[kind] = found
        return found


def name_of(function: Any) -> str:
    """Return the name of a user's call, for errors: of a function, or of a plan's type."""
    owner = getattr(function, "__self__", None)
    return str(function.__name__ if owner is None else type(owner).__name__)


def _found_framework(x: object, kind: type) -> Framework | None:
    library = str(kind.__module__).partition(".")[0]  # of Qiskit's gates it is None
    if issubclass(kind, np.ma.MaskedArray):
        return "masked"
    if library in _OWN or issubclass(kind, np.ndarray):
        return None
    if library in ("jax", "jaxlib"):
        return "jax"
    if hasattr(kind, "is_conj") and any(base.__module__ == "torch" for base in kind.__mro__):
        return "torch"
    names = "__cuda_array_interface__", "__dlpack__"
    own = getattr(x, "__dict__", {})  # an interface may be an attribute of each object
    return "exchange" if any(hasattr(kind, name) or name in own for name in names) else None
