"""Blocks of a GUPPI recording of one file or several, in the order of PKTIDX."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from workflow.data import Array
from workflow.files.input_error import InputError
from workflow.readers.guppi_header import (
    MAX_BYTES,
    SAME,
    HeaderError,
    SampleLayout,
    Span,
    layout_of,
    padding,
    parsed,
    span_of,
)
from workflow.storage.failures import cause_of
from workflow.storage.files import FileState, absent, file_state, is_file

_FIRST_READ = 16_384
"""Bytes that are read for a header first; most are shorter."""
MAX_BLOCKS = 1 << 18
"""Blocks of a recording; of the usual 128 MiB they are 32 TiB."""


@dataclass(frozen=True)
class Block:
    """A block's place: its file, the byte of its data, and what its header says."""

    file: int
    number: int
    start: int
    span: Span


@dataclass(frozen=True)
class Recording:
    """The blocks of files, the header of the first, and which samples each block has.

    ``first`` and ``end`` are (block,) numbers of samples: a block's own begin where the one before
    it ends, which has those that overlap, and none has those between. ``packets`` is what PKTIDX
    rises by a block; 0 where nothing says so.
    """

    files: tuple[Path, ...]
    states: tuple[FileState, ...]
    header: dict[str, str]
    layout: SampleLayout
    blocks: tuple[Block, ...]
    first: Array
    end: Array
    packets: int

    @property
    def samples(self) -> int:
        """Samples from the first to the last."""
        return int(self.end[-1])


def recording_of(files: Sequence[Path], *, zeros: bool) -> Recording:
    """Return the blocks of a recording's files.

    With ``zeros`` samples between them may be missing, and a block that its file was cut in is left
    out.

    Raises:
        InputError: a file that is not there or no GUPPI, headers that say what cannot be or of
            different recordings, samples that are there twice, or missing ones without ``zeros``.
    """
    for path in files:
        if not is_file(path):
            raise InputError(f"input.file: {absent(path)}")
    try:
        states = tuple(file_state(path) for path in files)
        return _recording(tuple(files), states, zeros)
    except OSError as error:
        raise InputError(f"input.file: {files[0]} cannot be read ({cause_of(error)})") from error


@lru_cache(maxsize=8)
def _recording(files: tuple[Path, ...], states: tuple[FileState, ...], zeros: bool) -> Recording:
    """Return `recording_of`; ``states`` are the states of the files, and changed files are read."""
    scan = _Scan(files[0], zeros)
    held = [scan.blocks(*one) for one in zip(range(len(files)), files, states, strict=True)]
    there = sorted((one for one in held if one), key=lambda blocks: blocks[0].span.packet)
    ordered = [block for blocks in there for block in blocks]
    if scan.layout is None or not ordered:
        raise InputError(f"input.file: {files[0]} has no whole block of samples")
    span = ordered[0].span
    packets = span.packets
    if not packets and len(ordered) > 1:
        packets = ordered[1].span.packet - span.packet
    first, end = _placed(files, ordered, packets, zeros)
    return Recording(
        files=files, states=states, header=scan.header, layout=scan.layout, blocks=tuple(ordered),
        first=first, end=end, packets=packets,
    )  # fmt: skip


class _Scan:
    """A walk over the blocks of a recording's files, one file after another.

    ``header`` and ``layout`` are those of the first block, which all others must agree with.
    """

    def __init__(self, first: Path, zeros: bool) -> None:
        self._first, self._zeros, self._count = first, zeros, 0
        self.header: dict[str, str] = {}
        self.layout: SampleLayout | None = None

    def blocks(self, number: int, path: Path, state: FileState) -> list[Block]:
        """Return the whole blocks of a file; errors as in `recording_of`."""
        blocks: list[Block] = []
        at, size = 0, state[1]
        with path.open("rb") as raw:
            while at < size:
                what = f"block {len(blocks)} of {path}"
                found, start, span = self._span_at(raw, at, what)
                if start + span.data_bytes > size:
                    self._refuse_cut(what, max(0, size - start), span)
                    break
                if self._count == MAX_BLOCKS:
                    raise InputError(
                        f"input.file: {self._first} and the files behind it must have at most "
                        f"{MAX_BLOCKS} blocks; name fewer files by the pattern"
                    )
                self._count += 1
                blocks.append(Block(number, len(blocks), start, span))
                at = _behind(raw, start + span.data_bytes, padding(found, span.data_bytes))
        return blocks

    def _span_at(self, raw: BinaryIO, at: int, what: str) -> tuple[dict[str, str], int, Span]:
        """Return a block's header, the first byte of its data, and what the header says of them."""
        try:
            found, start = _header_at(raw, at)
            self.layout = self.layout or layout_of(found)
            span = span_of(found, self.layout)
        except HeaderError as error:
            raise InputError(f"input.file: {what} {error}") from None
        self.header = self.header or found
        _check_same(what, found, self.header, self._first)
        return found, start, span

    def _refuse_cut(self, what: str, held: int, span: Span) -> None:
        """Raise InputError for a block that is cut, unless the study leaves such blocks out."""
        if not self._zeros:
            raise InputError(
                f"input.file: {what} is cut: it has {held} of {span.data_bytes} bytes; "
                "`flagged: zero` in the input leaves it out"
            )


def _header_at(raw: BinaryIO, at: int) -> tuple[dict[str, str], int]:
    """Return the header at a byte of a file, and the byte of the data behind it."""
    raw.seek(at)
    data = raw.read(_FIRST_READ)
    try:
        found, size = parsed(data)
    except HeaderError:
        if len(data) < _FIRST_READ:
            raise
        found, size = parsed(data + raw.read(MAX_BYTES - _FIRST_READ))
    return found, at + size


def _behind(raw: BinaryIO, end: int, pad: int) -> int:
    """Return the byte behind samples that end at a byte, and behind their padding.

    Recorders pad them, programs that write blocks anew may not.
    """
    if pad:
        try:
            _header_at(raw, end)
        except HeaderError:
            return end + pad
    return end


def _check_same(what: str, found: dict[str, str], header: dict[str, str], path: Path) -> None:
    for key in SAME:
        if found.get(key) != header.get(key):
            raise InputError(
                f"input.file: {what} must be of the recording of {path}, but its header has {key} "
                f"{found.get(key)!r}, and that one {header.get(key)!r}"
            )


def _placed(
    files: Sequence[Path], blocks: Sequence[Block], packets: int, zeros: bool
) -> tuple[Array, Array]:
    """Return the first sample of each block and the one behind its last."""
    one = blocks[0].span
    fresh = one.samples - one.overlap
    first = np.zeros(len(blocks), np.int64)
    end = np.zeros(len(blocks), np.int64)
    end[0] = one.samples
    lost = 0
    for number, (before, block) in enumerate(pairwise(blocks), 1):
        apart = block.span.packet - before.span.packet
        what = (
            f"input.file: block {block.number} of {files[block.file]} has PKTIDX "
            f"{block.span.packet}, {apart} after block {before.number} of {files[before.file]}, "
            f"where a block has {packets}"
        )
        steps, rest = divmod(apart * fresh, max(1, packets))
        if packets <= 0 or apart <= 0 or rest or steps < fresh:
            raise InputError(f"{what}: samples are there twice, or in no order; leave a file out")
        first[number] = first[number - 1] + steps
        end[number] = first[number] + block.span.samples
        if steps > before.span.samples:
            gap = steps - before.span.samples
            lost += gap
            if not zeros:
                raise InputError(
                    f"{what}: {gap} samples are missing; `flagged: zero` in the input makes them 0"
                )
            if lost > len(blocks) * one.samples:
                raise InputError(f"{what}: more samples are missing than there are")
    return first, end


@contextlib.contextmanager
def opened(recording: Recording, number: int) -> Iterator[BinaryIO]:
    """Yield a file of a recording; raises InputError where it is not as its blocks were found."""
    path = recording.files[number]
    try:
        with path.open("rb") as raw:
            if file_state(path) != recording.states[number]:
                raise InputError(
                    f"input.file: {path} was changed by another program while it was read"
                )
            yield raw
    except OSError as error:
        raise InputError(f"input.file: {path} cannot be read ({cause_of(error)})") from error


def fill(raw: BinaryIO, at: int, room: Array) -> None:
    """Read as many bytes from a place of a file on as an array has; raises InputError for fewer."""
    left = room.reshape(-1).view(np.uint8).data
    while len(left):
        count = os.preadv(raw.fileno(), [left], at)
        if not count:
            raise InputError(f"input.file: {raw.name} became shorter while it was read")
        at, left = at + count, left[count:]
