"""Stretches of a workload that are verified and delivered one after another.

Entries along the axes of `Workload.splits` do not depend on each other, so a result that is larger
than memory is read, verified and written a piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from argand import Precision, get_precision

from workflow.data import Staged
from workflow.storage.staged import StagedFile
from workflow.workloads.base import Workload

MAX_BYTES = 256 << 20
"""Bytes of a piece, as `sizes` counts. What it shares with all others comes on top, and a piece is
at least as large as that: else the work on what is shared would be most of it."""


@dataclass(frozen=True)
class Sizes:
    """Bytes in fp64: of each operand of floating-point numbers, and of one result.

    ``written`` is the result's own size; ``result`` is at least that of the operand which it is
    made in.
    ``formed`` is the product that a result is made of, which peers hold whole: beams before their
    power is summed.
    ``intermediate`` is `Workload.intermediate_bytes`.
    """

    operands: dict[str, int]
    result: int
    written: int
    formed: int = 0
    intermediate: int = 0

    @property
    def in_and_out(self) -> int:
        """Bytes of the operands and the result."""
        return sum(self.operands.values()) + self.result

    @property
    def volume(self) -> int:
        """Bytes of the operands, the larger of result and product, and what lies between them."""
        return sum(self.operands.values()) + max(self.result, self.formed) + self.intermediate


def sizes(workload: Workload, outline: Staged) -> Sizes:
    """Return the bytes of a workload's arrays in fp64; an outline's values are not read."""
    operands = {
        name: data.size * (16 if data.dtype.kind == "c" else 8)
        for name, data in outline.operands.items()
        if data.dtype.kind in "fc"
    }
    item = np.dtype(workload.widest_result(outline)).itemsize
    written = item * int(np.prod(workload.result_shape(outline), dtype=object))
    intermediate = workload.intermediate_bytes(outline)
    if workload.result_like:
        result = max(operands[workload.result_like], written)
        return Sizes(operands, result, written, intermediate=intermediate)
    shape = workload.shape(outline, get_precision("fp64"))
    batch = (shape.batch or 1) if workload.peers_hold_batch else 1
    formed = 16 * int(np.prod([batch, shape.m or 0, shape.n or 0], dtype=object))
    return Sizes(operands, written, written, formed, intermediate)


def written_bytes(workload: Workload, outline: Staged, precision: Precision) -> int:
    """Return the bytes of a result at a precision, as a run or a delivery writes it."""
    written = sizes(workload, outline).written
    if workload.wide_result:
        return written
    wide = np.dtype(get_precision("fp64").output).itemsize
    return written * np.dtype(precision.output).itemsize // wide


@dataclass(frozen=True)
class Piece:
    """The entries from ``start`` to ``stop`` of an axis; everything where there is no axis."""

    axis: str | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.axis} {self.start} to {self.stop - 1}" if self.axis else ""

    def of(self, staged: StagedFile) -> StagedFile:
        """Return the operands of the piece."""
        return staged.stretch(self.axis, self.start, self.stop) if self.axis else staged

    def within(self, axes: Sequence[str], shape: Sequence[int]) -> list[slice]:
        """Return the piece's place in an array with these axes."""
        part = [slice(length) for length in shape]
        if self.axis:
            part[axes.index(self.axis)] = slice(self.start, self.stop)
        return part


@dataclass(frozen=True)
class Pieces:
    """``length`` entries of an axis in pieces of ``entries``, a power of two unless it is all.

    ``shared`` are the operands that every piece has whole, ``bytes`` what one piece takes with
    them and ``own`` without. Without an axis the one piece is everything.
    """

    axis: str | None
    length: int
    entries: int
    shared: frozenset[str]
    bytes: int
    own: int

    def __len__(self) -> int:
        return -(-self.length // self.entries)

    def __iter__(self) -> Iterator[Piece]:
        for start in range(0, self.length, self.entries):
            yield Piece(self.axis, start, min(start + self.entries, self.length))


def pieces_of(workload: Workload, outline: Staged, most: int | None = None) -> Pieces:
    """Return the pieces of what an outline describes, along the first axis of small enough entries.

    Where there is none, along the axis with the smallest entries.
    """
    most = MAX_BYTES if most is None else most
    found = sizes(workload, outline)
    tried = [_along(axis, outline, found, most) for axis in workload.split_axes(outline.axes)]
    usable = [pieces for pieces in tried if pieces is not None]
    if found.volume <= most or not usable:
        return Pieces(None, 1, 1, frozenset(), found.volume, found.volume)
    fitting = [pieces for pieces in usable if pieces.own <= max(most, pieces.bytes - pieces.own)]
    return fitting[0] if fitting else min(usable, key=lambda pieces: pieces.own)


def _along(axis: str, outline: Staged, found: Sizes, most: int) -> Pieces | None:
    """Return the pieces along an axis; None where it has no two entries."""
    length = outline.axis_lengths().get(axis, 1)
    if length < 2:
        return None
    shared = frozenset(outline.whole_along(axis))
    common = sum(found.operands.get(name, 0) for name in shared)
    entry = max(1, (found.volume - common) // length)
    entries = 1 << (max(1, min(length, max(most, common) // entry)).bit_length() - 1)
    return Pieces(axis, length, entries, shared, common + entries * entry, entries * entry)
