"""Complex numbers of two 4-bit integers in a byte, as correlators' inputs lie in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PACKED_TYPES = ("int8", "uint8")
"""Stored types of such bytes."""


def unpacked(data: Array, *, unsigned: bool = False) -> tuple[Array, Array]:
    """Return real and imaginary part as int8, from -8 to 7, of bytes of any shape.

    The real part is the upper half of a byte, the imaginary part the lower one, each in two's
    complement: 0x8f is -8 - 1j. With ``unsigned`` they are from 0 to 15.
    """
    if unsigned:
        return data.view(np.uint8) >> 4, data.view(np.uint8) & 15
    upper = data.view(np.int8)
    return upper >> 4, (upper << 4) >> 4
