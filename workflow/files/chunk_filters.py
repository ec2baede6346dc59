"""The number of bytes that the stored bytes of an HDF5 chunk decode to, found without HDF5.

HDF5 trusts what a chunk decodes to: where that is shorter than the chunk's shape it goes on reading
the memory behind. So a chunk's exact size is found first, in memory bounded by its shape. Where a
format says all sizes in its headers and its decoder keeps to them, they are followed; others are
decoded, by Python's libraries or the very ones that HDF5 decodes with.
"""

from __future__ import annotations

import bz2
import ctypes
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import h5py
import numpy as np

_SHUFFLE, _FLETCHER32, _LZF, _LZ4, _ZSTD = 2, 3, 32000, 32004, 32015
_FED = 1 << 16
_TAKEN = 1 << 20
"""Bytes that streams are fed and that are taken of them at a time."""


class ChunkError(ValueError):
    """Stored bytes that are not chunks of their dataset."""


@dataclass(frozen=True)
class Filter:
    """One filter of a dataset, with its parameters."""

    code: int
    values: tuple[int, ...]


def decoded_size(stored: bytes, filters: Sequence[Filter], mask: int, most: int) -> int:
    """Return how many bytes a chunk decodes to.

    Args:
        stored: its bytes in the file.
        filters: the filters of its dataset, in the order in which they were applied; each is
            `allowed`.
        mask: the bits of filters that were left out for this chunk.
        most: bytes beyond which it is refused.

    Raises ChunkError where it cannot be decoded, or is larger than ``most``.
    """
    data: bytes | None = stored
    size = len(stored)
    for index, one in reversed(list(enumerate(filters))):
        if mask >> index & 1:
            continue
        if one.code == _SHUFFLE:
            data = None
        elif one.code == _FLETCHER32:
            if size < 4:
                raise ChunkError(f"has {size} bytes where its checksum alone has 4")
            size -= 4
            data = data[:-4] if data is not None else None
        elif data is None:
            raise ChunkError("is compressed twice, or shuffled after it was compressed")
        else:
            size, data = _DECODERS[one.code](data, one.values, most), None
    return size


def allowed(code: int) -> bool:
    """Return whether the decoded size of chunks with this filter can be found."""
    if code in _FUNCTIONS:
        return _library(code) is not None
    return code in _DECODERS or code in (_SHUFFLE, _FLETCHER32)


NAMES = "gzip, shuffle, fletcher32, scaleoffset, lzf, bzip2, lz4, zstd, bitshuffle, blosc"
"""Names of the filters that are `allowed`, as messages have them."""


def _gzip(data: bytes, _: Sequence[int], most: int) -> int:
    return _streamed(zlib.decompressobj(), data, most)


def _bzip2(data: bytes, _: Sequence[int], most: int) -> int:
    return _streamed(bz2.BZ2Decompressor(), data, most)


def _streamed(stream: zlib._Decompress | bz2.BZ2Decompressor, data: bytes, most: int) -> int:
    """Return the bytes of a stream, none of them kept; it must end within the data."""
    size = 0
    for start in range(0, len(data), _FED):
        piece = data[start : start + _FED]
        while not stream.eof:
            try:
                taken = len(stream.decompress(piece, _TAKEN))
            except (zlib.error, OSError, ValueError) as error:
                raise ChunkError(f"cannot be decoded ({error})") from error
            size += taken
            if size > most:
                raise ChunkError(f"decodes to more than {most} bytes")
            # Zlib hands back what it did not take; bzip2 keeps it.
            piece = getattr(stream, "unconsumed_tail", b"")
            if taken < _TAKEN and not piece:
                break
    if not stream.eof:
        raise ChunkError("ends within its compressed data")
    return size


def _lzf(data: bytes, _: Sequence[int], most: int) -> int:
    library, room = _needed(_LZF), np.empty(max(1, most), np.uint8)
    size = int(library.lzf_decompress(data, len(data), room.ctypes.data, most))
    if size == 0:
        raise ChunkError(f"cannot be decoded, or decodes to more than {most} bytes")
    return size


def _lz4(data: bytes, _: Sequence[int], most: int) -> int:
    """Return the size that stands first; blocks follow, each with its length before it."""
    size, block = _unpack(">QI", data)
    if size > most:
        raise ChunkError(f"decodes to {size} bytes")
    if block == 0:
        raise ChunkError("has blocks of 0 bytes")
    library, room = _needed(_LZ4), np.empty(max(1, min(block, size)), np.uint8)
    place, left = 12, size
    while left:
        length = min(block, left)
        (stored,) = _unpack(">I", data, place)
        piece = data[place + 4 : place + 4 + stored]
        if len(piece) != stored:
            raise ChunkError("ends within its compressed data")
        if stored != length:  # else it is left as it is
            made = library.LZ4_decompress_safe(piece, room.ctypes.data, stored, length)
            if made != length:
                raise ChunkError("cannot be decoded")
        place, left = place + 4 + stored, left - length
    if place != len(data):
        raise ChunkError(f"has {len(data)} bytes, its blocks {place}")
    return int(size)


def _zstd(data: bytes, _: Sequence[int], most: int) -> int:
    """Return one frame. The filter gives the decoder the room that its header asks for."""
    library = _needed(_ZSTD)
    size = int(library.ZSTD_getDecompressedSize(data, len(data)))
    if size > most:
        raise ChunkError(f"decodes to {size} bytes")
    room = np.empty(max(1, size), np.uint8)
    if library.ZSTD_decompress(room.ctypes.data, size, data, len(data)) != size:
        raise ChunkError("cannot be decoded")
    return size


def _bitshuffle(data: bytes, values: Sequence[int], most: int) -> int:
    """Return the size that bitshuffle with LZ4 decodes to, in bytes. Raises ChunkError.

    Blocks are of whole eighths of elements; the last elements, up to 7, are not compressed. The
    decoder holds each block to the length before it and to what it must decode to.
    """
    if len(values) < 3 or values[2] == 0:
        raise ChunkError("has no size of its elements")
    element = values[2]
    if len(values) < 5 or values[4] == 0:
        if len(data) % element:
            raise ChunkError(f"has {len(data)} bytes, no multiple of {element}")
        return len(data)
    size, block = _unpack(">QI", data)
    if size > most or size % element:
        raise ChunkError(f"decodes to {size} bytes")
    step = block // element
    if step == 0 or step % 8:
        raise ChunkError(f"has blocks of {block} bytes")
    elements, place = size // element, 12
    for _block in range(elements // step + (elements % step >= 8)):
        place += 4 + _unpack(">I", data, place)[0]
    place += elements % 8 * element
    if place != len(data):
        raise ChunkError(f"has {len(data)} bytes, its blocks {place}")
    return int(size)


def _blosc(data: bytes, _: Sequence[int], most: int) -> int:
    """Return the decoded size in the 16-byte header, by which the decoder goes."""
    _unpack("<16x", data)
    size, stored = _unpack("<I4xI", data, 4)
    if stored != len(data):
        raise ChunkError(f"has {len(data)} bytes, its header says {stored}")
    if size > most:
        raise ChunkError(f"decodes to {size} bytes")
    return int(size)


def _scaleoffset(data: bytes, values: Sequence[int], most: int) -> int:
    """Return the decoded size; of 21 bytes before the bits, the first 4 have an element's bits."""
    if len(values) < 8:
        raise ChunkError("has no parameters of scale-offset")
    scale, factor, elements, kind, element = values[:5]
    size = elements * element
    if size > most:
        raise ChunkError(f"decodes to {size} bytes")
    if (kind == 0 or scale == 1) and factor == 8 * element:
        return len(data)  # left as it is
    (bits,) = _unpack("<I", data)
    if bits > 8 * element:
        raise ChunkError(f"has {bits} bits an element of {element} bytes")
    # The last byte is there even where no bit is left for it, except for whole elements.
    if len(data) - 21 != (size if bits == 8 * element else elements * bits // 8 + 1):
        raise ChunkError(f"has {len(data)} bytes for {elements} elements of {bits} bits")
    return size


def _unpack(form: str, data: bytes, place: int = 0) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, place)
    except struct.error:
        raise ChunkError("ends within its headers") from None


_DECODERS: dict[int, Callable[[bytes, Sequence[int], int], int]] = {
    1: _gzip, 6: _scaleoffset, 307: _bzip2, _LZF: _lzf, 32001: _blosc, _LZ4: _lz4,
    32008: _bitshuffle, _ZSTD: _zstd,
}  # fmt: skip
_IN, _OUT, _SIZE, _INT = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_FUNCTIONS: dict[int, dict[str, tuple[list[Any], Any]]] = {
    _LZF: {"lzf_decompress": ([_IN, ctypes.c_uint, _OUT, ctypes.c_uint], ctypes.c_uint)},
    _LZ4: {"LZ4_decompress_safe": ([_IN, _OUT, _INT, _INT], _INT)},
    _ZSTD: {
        "ZSTD_decompress": ([_OUT, _SIZE, _IN, _SIZE], _SIZE),
        "ZSTD_getDecompressedSize": ([_IN, _SIZE], ctypes.c_uint64),
    },
}
"""Filters that are decoded by the libraries of h5py and hdf5plugin: types of arguments and result.

The libraries export these functions, but h5py and hdf5plugin do not document that they do: where
one is absent, the filter is not `allowed`.
"""


@cache
def _library(code: int) -> ctypes.CDLL | None:
    """Return the library that HDF5 decodes a filter with; None where it lacks what is called."""
    import hdf5plugin

    plugins = hdf5plugin.get_config().registered_filters
    paths = {_LZF: h5py.h5z.__file__, _LZ4: plugins.get("lz4"), _ZSTD: plugins.get("zstd")}
    try:
        library = ctypes.CDLL(paths[code]) if paths[code] else None
        for name, (arguments, result) in _FUNCTIONS[code].items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
    except (AttributeError, OSError):
        return None
    return library


def _needed(code: int) -> ctypes.CDLL:
    library = _library(code)
    assert library is not None, "the filter was allowed"
    return library
