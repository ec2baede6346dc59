"""Kernel arguments as one structure, passed by value: a launch then costs a few microseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Fields = Sequence[tuple[str, str]]
"""C type and name of each member, in order."""

_SCALARS = {"int": np.int32, "int64": np.int64, "float": np.float32}


def arguments_dtype(fields: Fields) -> np.dtype[Any]:
    """The NumPy type with the members and the padding of the C structure; pointers are integers."""
    members = [(name, np.uint64 if kind.endswith("*") else _SCALARS[kind]) for kind, name in fields]
    return np.dtype(members, align=True)


class Arguments:
    """A structure whose members are known but for the addresses.

    Raises KeyError for a member without a value.
    """

    def __init__(self, dtype: np.dtype[Any], values: Mapping[str, Any]) -> None:
        names = dtype.names or ()
        self._row = np.array([tuple(values[name] for name in names)], dtype)
        self._bytes = np.dtype(f"V{dtype.itemsize}")

    def at(self, **members: int) -> Any:
        """The structure with these members set, as a kernel's argument."""
        row = self._row.copy()
        for name, value in members.items():
            row[name] = value
        # CuPy would walk all members of a structured type at each launch.
        return row.view(self._bytes)


def size_check(structure: str, fields: Fields) -> str:
    """C++ that fails to compile where the structure is not what the launch fills."""
    size = arguments_dtype(fields).itemsize
    return f'static_assert(sizeof({structure}) == {size}, "as the launch fills it");\n'
