"""Kernel arguments as one structure, passed by value, of which a launch fills in addresses."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

Fields = Sequence[tuple[str, str]]
"""C type and name of each member, in order; ``name[n]`` is an array of n."""

_WORD = struct.Struct("=q")
_SCALARS = {
    "int": np.int32, "uint32": np.uint32, "int64": np.int64,
    "float": np.float32, "double": np.float64,
}  # fmt: skip


def arguments_dtype(fields: Fields) -> np.dtype[Any]:
    """The NumPy type with the members and the padding of the C structure; pointers are integers."""
    members: list[Any] = []
    for kind, name in fields:
        scalar = np.uint64 if kind.endswith("*") else _SCALARS[kind]
        name, _, length = name.partition("[")
        members.append((name, scalar, (int(length[:-1]),)) if length else (name, scalar))
    return np.dtype(members, align=True)


class Arguments:
    """A structure whose members are known but for some 64-bit ones, such as addresses.

    Raises KeyError for a member without a value.
    """

    def __init__(self, dtype: np.dtype[Any], values: Mapping[str, Any]) -> None:
        names = dtype.names or ()
        #: The structure's memory, in which `set` writes.
        self.bytes = np.array([tuple(values[name] for name in names)], dtype).view(np.uint8)
        self._memory = self.bytes.data
        fields: Mapping[str, Any] = dtype.fields or {}
        self._offsets = {name: fields[name][1] for name in names}
        self._wide = {fields[name][1] for name in names if fields[name][0].itemsize == _WORD.size}

    def writer(self, first: str, count: int) -> Callable[..., None]:
        """What gives the ``count`` neighbouring members of 64 bits from ``first`` on their values.

        Several at once take a fraction of what `set` takes. Raises KeyError for an unknown member,
        ValueError where others stand between them.
        """
        begin = self._offsets[first]
        if not self._wide.issuperset(range(begin, begin + 8 * count, 8)):
            raise ValueError(f"{count} members of 64 bits do not stand together from {first} on")
        return partial(struct.Struct(f"={count}q").pack_into, self._memory, begin)

    def set(self, members: Mapping[str, int]) -> None:
        """Give these members, of 64 bits, their values."""
        for name, value in members.items():
            _WORD.pack_into(self._memory, self._offsets[name], value)


def size_check(structure: str, fields: Fields) -> str:
    """C++ that fails to compile where the structure is not what the launch fills."""
    size = arguments_dtype(fields).itemsize
    return f'static_assert(sizeof({structure}) == {size}, "as the launch fills it");\n'
