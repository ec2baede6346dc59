"""Kernel arguments as one structure, passed by value; a launch writes the addresses into it."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Fields = Sequence[tuple[str, str]]
"""C type and name of each member, in order; ``name[n]`` is an array of n."""

_WORD = struct.Struct("=q")
_SCALARS = {
    "int": np.int32, "uint32": np.uint32, "int64": np.int64,
    "float": np.float32, "double": np.float64,
}  # fmt: skip


class Address(NamedTuple):
    """An address relative to a call: the index of one of its addresses, and an offset in bytes."""

    base: int
    offset: int = 0


def arguments_dtype(fields: Fields) -> np.dtype[Any]:
    """Return the NumPy type with the C structure's members and padding; pointers are integers."""
    members: list[Any] = []
    for kind, name in fields:
        scalar = np.uint64 if kind.endswith("*") else _SCALARS[kind]
        name, _, length = name.partition("[")
        members.append((name, scalar, (int(length[:-1]),)) if length else (name, scalar))
    return np.dtype(members, align=True)


def unset_members(fields: Fields, values: Mapping[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Return the pointers without a value, which are null, and the int64 that launches must set.

    Arrays are not among them: `Arguments` raises KeyError for one without a value.
    """
    unset = [(kind, name) for kind, name in fields if name not in values and "[" not in name]
    pointers = {name: 0 for kind, name in unset if kind.endswith("*")}
    return pointers, [name for kind, name in unset if kind == "int64"]


class Arguments:
    """A structure whose members are fixed except some 64-bit ones, such as addresses.

    ``later`` are members without a value that `set` gives one. Raises KeyError for any other member
    without a value.
    """

    def __init__(
        self, dtype: np.dtype[Any], values: Mapping[str, Any], later: Collection[str] = ()
    ) -> None:
        names = dtype.names or ()
        self._unset, values = {*later}, {**dict.fromkeys(later, 0), **values}
        #: The structure's memory, in which `set` writes.
        self.bytes = np.array([tuple(values[name] for name in names)], dtype).view(np.uint8)
        self._memory = self.bytes.data
        fields: Mapping[str, Any] = dtype.fields or {}
        self._offsets = {name: fields[name][1] for name in names}
        self._wide = {fields[name][1] for name in names if fields[name][0].itemsize == _WORD.size}

    def word(self, name: str) -> tuple[memoryview, int]:
        """Return the structure as 64-bit numbers, and the index of a member among them.

        Raises KeyError for an unknown member, ValueError for one of another size.
        """
        if self._offsets[name] not in self._wide:
            raise ValueError(f"{name} does not have 64 bits")
        return self._memory.cast("Q"), self._offsets[name] // _WORD.size

    def require(self, members: Collection[str]) -> None:
        """Raise KeyError where a member has no value before these are set."""
        self._unset.difference_update(members)
        if self._unset:
            raise KeyError(f"members without a value: {sorted(self._unset)}")

    def set(self, members: Mapping[str, int]) -> None:
        """Set these members, which have 64 bits.

        Raises KeyError where one is still without a value.
        """
        if self._unset:
            self.require(members)
        for name, value in members.items():
            _WORD.pack_into(self._memory, self._offsets[name], value)


def size_check(structure: str, fields: Fields) -> str:
    """Return C++ that does not compile where the structure's size is not that of these fields."""
    size = arguments_dtype(fields).itemsize
    return f'static_assert(sizeof({structure}) == {size}, "as the launch fills it");\n'
