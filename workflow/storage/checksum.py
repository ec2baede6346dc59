"""HDF5's Fletcher-32 of a chunk, by HDF5's own function or in wide words.

Other programs that read our files check it; it cannot tell a word of 16 zeros from one of 16 ones,
so we ourselves go by a CRC-32 (`chunk_sums`).

HDF5's filter allocates a buffer a chunk and lets in one thread at a time, which halves the speed of
writing. So the checksum is computed beside it; what is written is what the filter would have
written, and any HDF5 reader verifies it.

The library that h5py has loaded computes it in threads that do not wait for each other. It exports
the function but does not document it: where it is absent, or gives another value, NumPy takes the
sums, which are linear, over whole arrays. Threads then wait for each other's hold of the
interpreter in its reductions.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import h5py
import numpy as np
import numpy.typing as npt

_EVEN_WORDS = np.uint64(0x0000FFFF0000FFFF)
_WORD_BITS = np.uint64(16)
_COLUMNS = 512
_ROW_BYTES = 8 * _COLUMNS
_PIECE_BYTES = 256 * _ROW_BYTES
"""Handled at a time, a mebibyte: with shorter NumPy calls threads wait for each other's hold of the
interpreter. Sums of 16-bit words fit in 32 bits up to 65536 rows and 32768 columns."""


class _Scratch(threading.local):
    """Two buffers for each thread: fresh memory for every piece would cost more than the sums."""

    def __init__(self) -> None:
        self.even = np.empty((_PIECE_BYTES // _ROW_BYTES, _COLUMNS), np.uint64)
        self.odd = np.empty_like(self.even)


_SCRATCH = _Scratch()


def fletcher32(data: npt.NDArray[np.uint8]) -> int:
    """Return the checksum of bytes as HDF5 computes it (H5_checksum_fletcher32).

    Raises ValueError for bytes that are not contiguous.
    """
    if data.size == 0:
        return 0
    if not data.flags.c_contiguous:
        raise ValueError("data must be contiguous, got strides of other values")
    return _CHOSEN(data)


def fletcher32_by_numpy(data: npt.NDArray[np.uint8]) -> int:
    """Return `fletcher32` without HDF5.

    With big-endian 16-bit words w_p, p = 0 .. n - 1 (an odd last byte is the high half of a word):
    sum1 = sum w_p and sum2 = sum (n - p) w_p, both modulo 65535, where a residue of 0 is stored as
    65535 unless every word is 0. Swapping a word's bytes multiplies it by 256 modulo 65535.
    """
    words = (data.size + 1) // 2
    total, weighted = 0, 0
    for start in range(0, data.size, _PIECE_BYTES):
        piece = data[start : start + _PIECE_BYTES]
        if piece.size % _ROW_BYTES:
            piece = np.pad(piece, (0, -piece.size % _ROW_BYTES))  # zeros add nothing to the sums
        piece_sum, piece_weighted = _sums(piece.view(np.uint64).reshape(-1, _COLUMNS))
        total += piece_sum
        weighted += start // 2 * piece_sum + piece_weighted
    if total == 0:
        return 0
    sum1 = total * 256 % 65535 or 65535
    sum2 = (words * total - weighted) * 256 % 65535 or 65535
    return sum2 << 16 | sum1


def _sums(elements: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """Return the sum of the little-endian 16-bit words, and the sum of each times its position."""
    rows, columns = elements.shape
    even = np.bitwise_and(elements, _EVEN_WORDS, out=_SCRATCH.even[:rows])
    odd = np.right_shift(elements, _WORD_BITS, out=_SCRATCH.odd[:rows])
    np.bitwise_and(odd, _EVEN_WORDS, out=odd)
    # Each uint64 now holds two 32-bit lanes: words 0 and 2 in `even`, 1 and 3 in `odd`.
    lanes = np.empty((columns, 4), np.uint64)
    lanes[:, 0::2] = np.add.reduce(even, axis=0).view(np.uint32).reshape(columns, 2)
    lanes[:, 1::2] = np.add.reduce(odd, axis=0).view(np.uint32).reshape(columns, 2)
    even += odd
    by_row = np.add.reduce(even, axis=1).view(np.uint32).reshape(rows, 2).sum(axis=1, dtype="u8")
    before_rows = 4 * columns * int(by_row @ np.arange(rows, dtype=np.uint64))
    within_rows = int(lanes.reshape(-1) @ np.arange(4 * columns, dtype=np.uint64))
    return int(by_row.sum()), before_rows + within_rows


def _of_hdf5() -> Callable[[npt.NDArray[np.uint8]], int] | None:
    """Return HDF5's function; None where it is not exported or is not what it was."""
    try:
        # Its symbols are found through a module that is linked to it, wherever it lies.
        function = ctypes.CDLL(h5py.h5.__file__).H5_checksum_fletcher32
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_uint32
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def checksum(data: npt.NDArray[np.uint8]) -> int:
        return int(function(data.ctypes.data, data.size))

    samples = (np.arange(size).astype(np.uint8) for size in (1, 2, 359, 100_001))
    same = all(checksum(sample) == fletcher32_by_numpy(sample) for sample in samples)
    return checksum if same else None


_CHOSEN = _of_hdf5() or fletcher32_by_numpy
