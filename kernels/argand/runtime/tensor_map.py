"""Tensor maps: how the copy engine of a GPU (sm_90) sees an array in its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

ALIGNMENT = 16
"""Bytes to which the copy engine wants addresses and strides."""
WORDS = 16
"""64-bit numbers of a tensor map."""
_OTHER_ADDRESSES = (1 << 12, 0x7FFF_FFFF_FFF0)
"""Bits by which addresses differ at which it is looked what moving a map writes."""


@cache
def _driver() -> Any:
    """Imported once: the statement itself takes more than a microsecond."""
    from cuda.bindings import driver

    return driver


class TensorMapError(RuntimeError):
    """The driver refused to describe an array."""


class TensorMap:
    """A tensor map in memory of the host, from which it is copied to where a launch reads it.

    Describing an array takes some 30 us, moving the description to another array of the same form
    1.4 us.
    """

    def __init__(self, found: Any, address: int) -> None:
        self._found = found
        self.address = address

    def move(self, address: int) -> None:
        """Describe the array at this address. Raises TensorMapError where the driver refuses."""
        error = _driver().cuTensorMapReplaceAddress(self._found, address)[0]
        if error:
            raise TensorMapError(
                f"the driver refuses to move a tensor map ({error.name}) to {address:#x}"
            )
        self.address = address

    @property
    def words(self) -> tuple[int, ...]:
        """What it is, as 64-bit numbers."""
        return tuple((ctypes.c_uint64 * WORDS).from_address(int(self._found.getPtr())))

    def moves_by_word(self) -> bool:
        """Whether the first word is the address, and all that differs between arrays of a form.

        The layout is the driver's own: what it writes at other addresses is looked at.
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
    """The tensor map of arrays of one form, which differ in their address only, where it is read.

    ``make(address)`` describes the first; ``words`` are the 64-bit numbers that a launch reads.
    """

    def __init__(self, make: Callable[[int], TensorMap], words: memoryview) -> None:
        self._make, self.words = make, words
        self._found: TensorMap | None = None
        #: Whether writing the address into the first word moves it; known once it was moved.
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
