"""Tensor maps: how the copy engine of a GPU (sm_90) sees an array in its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

ALIGNMENT = 16
"""Bytes to which the copy engine wants addresses and strides."""
_BYTES = 128
"""Of a tensor map."""


@cache
def _driver() -> Any:
    """Imported once: the statement itself takes more than a microsecond."""
    from cuda.bindings import driver

    return driver


class TensorMapError(RuntimeError):
    """The driver refused to describe an array."""


class TensorMap:
    """A tensor map in memory of the host, from which a launch copies it.

    ``place`` is where it lies. Describing an array takes some 30 us, moving the description to
    another array of the same form next to nothing.
    """

    def __init__(self, found: Any, address: int) -> None:
        self._found, self._address = found, address
        self.place = int(found.getPtr())

    def move(self, address: int) -> None:
        """Describe the array at this address. Raises TensorMapError where the driver refuses."""
        if address == self._address:
            return
        error = _driver().cuTensorMapReplaceAddress(self._found, address)[0]
        if error:
            raise TensorMapError(
                f"the driver refuses to move a tensor map ({error.name}) to {address:#x}"
            )
        self._address = address

    def another(self, address: int) -> TensorMap:
        """One of its own for the array at this address. Raises TensorMapError as `move` does."""
        found = _driver().CUtensorMap()
        ctypes.memmove(int(found.getPtr()), self.place, _BYTES)
        copy = TensorMap(found, self._address)
        copy.move(address)
        return copy


class MapsOfForm:
    """The tensor maps of arrays of one form, which differ in their address only.

    ``make(address)`` describes the first. The latest few are kept; others are moved to new
    addresses.
    """

    _MOST = 8

    def __init__(self, make: Callable[[int], TensorMap]) -> None:
        self._make = make
        self._kept: dict[int, TensorMap] = {}

    def at(self, address: int) -> int:
        """The place of the map of the array there, until so many other arrays have been there."""
        found = self._kept.get(address)
        if found is None:
            if not self._kept:
                found = self._make(address)
            elif len(self._kept) < self._MOST:
                found = next(iter(self._kept.values())).another(address)
            else:
                found = self._kept.pop(next(iter(self._kept)))
                found.move(address)
            self._kept[address] = found
        return found.place


def tensor_map(
    address: int,
    item: int,
    shape: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    line_bytes: int,
) -> TensorMap:
    """A tensor map as a kernel's argument.

    Args:
        address: of the first element, a multiple of 16.
        item: bytes of an element: 2, 4 or 8.
        shape: lengths of the axes, the contiguous one first.
        strides: bytes from one to the next along each further axis, multiples of 16.
        box: elements that one copy takes along each axis.
        line_bytes: the width of the swizzle, 32, 64 or 128.

    Raises TensorMapError where the driver refuses.
    """
    driver = _driver()
    kinds = driver.CUtensorMapDataType
    kind = {
        2: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        8: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT64,
    }[item]
    swizzles = driver.CUtensorMapSwizzle
    swizzle = {
        32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
        64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
        128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
    }[line_bytes]
    error, found = driver.cuTensorMapEncodeTiled(
        kind, len(shape), address,
        [driver.cuuint64_t(n) for n in shape], [driver.cuuint64_t(n) for n in strides],
        [driver.cuuint32_t(n) for n in box], [driver.cuuint32_t(1)] * len(shape),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )  # fmt: skip
    if error != driver.CUresult.CUDA_SUCCESS:
        raise TensorMapError(
            f"the driver refuses a tensor map ({error.name}): address {address:#x}, item {item}, "
            f"shape {list(shape)}, strides {list(strides)}, box {list(box)}"
        )
    return TensorMap(found, address)
