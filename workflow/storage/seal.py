"""A seal at the end of an HDF5 file: what the chunks' own checksums do not cover, it does.

A chunk is checked against its CRC-32 (`chunk_sums`) when it is read, but a flipped byte in a
header can be read as another shape, or keep HDF5 searching for ever. The seal is a SHA-256 of
everything outside the summed chunks, of their CRC-32 and of what says where they lie. It follows
the HDF5 data, where HDF5 readers do not look, costs no pass over the data, and is checked before
HDF5 opens the file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import BinaryIO

import h5py

from workflow.storage.chunk_sums import summed

MAGIC = b"\nARGAND1"
_TAIL = 8 + len(MAGIC)
Ranges = list[tuple[int, int]]


class SealError(OSError):
    """A file is cut short, or not what was written."""


def checksummed_ranges(file: h5py.File) -> Ranges:
    """Return offset and size of the runs of bytes that have a CRC-32, in ascending order."""
    found: Ranges = []
    file.flush()
    for dataset in summed(file):
        dataset.id.chunk_iter(lambda chunk: found.append((chunk.byte_offset, chunk.size)))
    merged: Ranges = []
    for offset, size in sorted(found):
        if merged and sum(merged[-1]) == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + size)
        else:
            merged.append((offset, size))
    return merged


def seal(path: Path, ranges: Ranges) -> None:
    """Append the seal to a closed file, given what its checksums cover."""
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        note = json.dumps({"end": end, "ranges": ranges, "sha256": _digest(file, end, ranges)})
        payload = note.encode()
        file.seek(end)
        file.write(payload + hashlib.sha256(payload).digest())
        file.write(len(payload).to_bytes(8, "little") + MAGIC)


def check_seal(path: Path) -> None:
    """Raise SealError where the file is not the one that was sealed; data chunks are not read."""
    with path.open("rb") as file:
        payload, start = _sealed_note(file)
        note = json.loads(payload)
        if note["end"] != start:
            raise SealError("bytes are missing or were added")
        if _digest(file, note["end"], [(o, n) for o, n in note["ranges"]]) != note["sha256"]:
            raise SealError("its headers fail their checksum")


def sealed_digest(path: Path) -> str:
    """Return the SHA-256 of what the seal says, which covers the CRC-32 of the chunks too.

    Two files that have the same hold the same. Raises SealError where there is no seal or it is
    damaged; the rest is not read.
    """
    with path.open("rb") as file:
        return hashlib.sha256(_sealed_note(file)[0]).hexdigest()


def _sealed_note(file: BinaryIO) -> tuple[bytes, int]:
    """Return the text of the seal, checked against its own SHA-256, and where it starts."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _TAIL))
    tail = file.read()
    length = int.from_bytes(tail[:8], "little")
    if tail[8:] != MAGIC or length + 32 + _TAIL > size:
        raise SealError("not a file of argand, or its end is missing")
    start = size - _TAIL - 32 - length
    file.seek(start)
    payload, stored = file.read(length), file.read(32)
    if hashlib.sha256(payload).digest() != stored:
        raise SealError("its seal is damaged")
    return payload, start


def _digest(file: BinaryIO, end: int, ranges: Ranges) -> str:
    """Return SHA-256 of the bytes before ``end`` and outside the ranges."""
    digest = hashlib.sha256()
    position = 0
    for offset, size in [*ranges, (end, 0)]:
        file.seek(position)
        remaining = offset - position
        while remaining > 0 and (block := file.read(min(remaining, 1 << 20))):
            digest.update(block)
            remaining -= len(block)
        position = offset + size
    return digest.hexdigest()
