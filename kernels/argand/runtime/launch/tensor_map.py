"""Tensor maps: descriptions of arrays in device memory for TMA (sm_90)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from argand.runtime.driver.driver_bindings import driver_bindings

ALIGNMENT = 16
"""Bytes to which TMA needs addresses and strides aligned."""
WORDS = 16
"""64-bit numbers of a tensor map."""
_OTHER_ADDRESSES = (1 << 12, 0x7FFF_FFFF_FFF0)
"""Bits that are flipped in an address to see what the driver writes for another one."""


class TensorMapError(RuntimeError):
    """The driver refused to make or move a tensor map."""


class TensorMap:
    """A tensor map in host memory, which is copied to the arguments of a launch.

    Making one takes some 30 us, moving it to another array of the same layout 1.4 us.
    """

    def __init__(self, found: Any, address: int) -> None:
        self._found = found
        self.address = address

    def move(self, address: int) -> None:
        """Describe the array at this address. Raises TensorMapError where the driver refuses."""
        error = driver_bindings().cuTensorMapReplaceAddress(self._found, address)[0]
        if error:
            raise TensorMapError(
                f"the driver refuses to move a tensor map ({error.name}) to {address:#x}"
            )
        self.address = address

    @property
    def words(self) -> tuple[int, ...]:
        """The map as 64-bit numbers."""
        return tuple((ctypes.c_uint64 * WORDS).from_address(int(self._found.getPtr())))

    def moves_by_word(self) -> bool:
        """Return whether the first word is the address and no other word depends on it.

        The layout of a map is the driver's own, so the map is moved to other addresses and read.
        """
        address, words = self.address, self.words
        try:
            for bits in _OTHER_ADDRESSES:
                self.move(address ^ bits)
                if self.words != (address ^ bits, *words[1:]):
                    return False
        except TensorMapError:
            return False
        finally:
            self.move(address)
        return words[0] == address


class MovingMap:
    """The tensor map argument of a launch, for arrays of one layout at any address.

    ``make(address)`` makes the first map; ``words`` are the 64-bit numbers that the launch reads.
    """

    def __init__(self, make: Callable[[int], TensorMap], words: memoryview) -> None:
        self._make, self.words = make, words
        self._found: TensorMap | None = None
        #: Whether writing the address into the first word moves the map; known after one move.
        self.by_word = False

    def move(self, address: int) -> None:
        """Describe the array at this address. Raises TensorMapError where the driver refuses."""
        if self._found is None:
            self._found = self._make(address)
            self.by_word = self._found.moves_by_word()
        elif address != self._found.address:
            self._found.move(address)
        for i, word in enumerate(self._found.words):
            self.words[i] = word


def tensor_map(
    address: int,
    item: int,
    shape: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    swizzle_bytes: int,
    fetched_bytes: int = 256,
) -> TensorMap:
    """Make the tensor map of an array.

    Args:
        address: address of the first element, a multiple of 16.
        item: bytes of an element: 1, 2, 4 or 8.
        shape: lengths of the axes, the contiguous one first.
        strides: bytes from one to the next along each further axis, multiples of 16.
        box: elements that one copy takes along each axis.
        swizzle_bytes: the width of the swizzle, 32, 64 or 128.
        fetched_bytes: what L2 fetches at once, 64, 128 or 256.

    Raises TensorMapError where the driver refuses.
    """
    driver = driver_bindings()
    kinds = driver.CUtensorMapDataType
    kind = {
        1: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        2: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        4: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        8: kinds.CU_TENSOR_MAP_DATA_TYPE_UINT64,
    }[item]
    swizzles = driver.CUtensorMapSwizzle
    swizzle = {
        32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
        64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
        128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
    }[swizzle_bytes]
    error, found = driver.cuTensorMapEncodeTiled(
        kind, len(shape), address,
        [driver.cuuint64_t(n) for n in shape], [driver.cuuint64_t(n) for n in strides],
        [driver.cuuint32_t(n) for n in box], [driver.cuuint32_t(1)] * len(shape),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{fetched_bytes}B"),
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )  # fmt: skip
    if error != driver.CUresult.CUDA_SUCCESS:
        raise TensorMapError(
            f"the driver refuses a tensor map ({error.name}): address {address:#x}, item {item}, "
            f"shape {list(shape)}, strides {list(strides)}, box {list(box)}"
        )
    return TensorMap(found, address)
