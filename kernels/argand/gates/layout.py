"""Layouts of a gate's tiles: in the state, in shared memory, in threads.

A tile is all settings of the targets times those of some low qubits. Its *places* are the qubits in
it in order; a tile's amplitude is numbered by its bits at them. In shared memory an amplitude lies
at its number times its bytes, with bits 4 to 6 of that address changed by an exclusive or of higher
bits: each place has a vector of three bits, and the eight lanes that read sixteen bytes each at a
time meet all banks where the vectors of their three places are independent. Needs no GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Literal

from argand.multiprocessor import SECTOR

GateKind = Literal["direct", "fma", "permute", "direct_mma", "mma", "wgmma", "small"]
"""Kernels: on CUDA cores in fp32 or fp64, without and with tiles, permutations, on tensor cores by
mma.sync, without and with tiles, or wgmma, and for states smaller than a tile."""

CHUNK = 16
"""Bytes that a thread copies at a time."""
_BANK_PLACES = 3
"""Bits of the number of a chunk in 128 bytes, which are all banks."""
_NEAR, _FAR = 7, 10
"""Columns are qubits below the first, then from the second on: on an H200 a tile of kilobytes that
lie eight kilobytes apart is copied faster than a contiguous one."""
PLANE_COLUMNS = 32
MAX_CHUNKS = 8
"""Chunks of a thread whose offsets a kernel's arguments list."""


def plane_line_bytes(width: int, targets_qubit0: bool, operand_bytes: int) -> int:
    """Return the bytes from eight rows of a plane to the next: ``WgmmaGate::kLineBytes``."""
    parts = 3 if joint_parts(width, targets_qubit0) else 2
    return parts * PLANE_COLUMNS * 8 * operand_bytes + 16


def joint_parts(width: int, targets_qubit0: bool) -> bool:
    """Return whether one MMA computes real and imaginary parts: ``WgmmaGate::kJointParts``.

    On an H200 that is faster for 7 qubits without qubit 0, and slower for 7 with it and for 6.
    """
    return width == 7 and not targets_qubit0


@dataclass(frozen=True)
class Tile:
    """The qubits of a tile, and which threads copy what of it.

    Attributes:
        qubits: the qubits in the tile, ascending; a place is an index into them.
        rows: places of the targets, ascending.
        columns: places of the others, ascending.
        item: bytes of an amplitude, 8 or 16.
        thread_places, chunk_places: places of the bits of a thread's number, and of the numbers of
            the chunks that a thread copies, lowest first.
    """

    qubits: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    item: int
    thread_places: tuple[int, ...]
    chunk_places: tuple[int, ...]

    @property
    def targets_qubit0(self) -> bool:
        """Whether qubit 0 of a complex64 state is a target: a chunk holds two rows of a column."""
        return self.item < CHUNK and self.rows[0] == 0

    def offset(self, place: int) -> int:
        """Return the bytes from an amplitude of a state to the one whose bit at a place is set."""
        return self.item << self.qubits[place]


@dataclass(frozen=True)
class Roles:
    """Places of the bits of a kernel's thread, register and column numbers, as its source has them.

    Attributes:
        read: bits of a thread's number when it reads columns; a lane's bits first.
        units: bits of the further columns of the same thread.
        pair: the bit from a column to its neighbour in the same thread; None where there is none.
        results: bits of a thread's number when it writes sums of products.
        registers: bits of the registers that it writes then.
        patterns: places of the three lowest lane bits in each access of sixteen bytes.
    """

    read: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    pair: int | None = None
    results: tuple[int, ...] = ()
    registers: tuple[int, ...] = ()
    patterns: tuple[tuple[int, ...], ...] = field(default=())


def controls_in_tile(controls: Sequence[int], item: int, *, sectors: bool = False) -> list[int]:
    """Return the controls whose two values are both in a tile: those within a chunk, or a sector.

    Memory takes as long for half of a sector as for all of it.
    """
    return [qubit for qubit in controls if item << qubit < (SECTOR if sectors else CHUNK)]


def tile_columns(
    qubits: int, targets: Sequence[int], controls: Sequence[int], item: int, *,
    sectors: bool = False,
) -> list[int]:  # fmt: skip
    """Return the qubits that may be a tile's columns, those that it takes first in front.

    Controls are not among them, except those of `controls_in_tile`.
    """
    fixed = set(controls) - set(controls_in_tile(controls, item, sectors=sectors))
    free = [qubit for qubit in range(qubits) if qubit not in fixed and qubit not in targets]
    return sorted(free, key=lambda qubit: (_NEAR <= qubit < _FAR, qubit))


def make_tile(
    kind: GateKind, columns: Sequence[int], targets: Sequence[int], item: int, threads: int
) -> Tile:
    """Return the tile with these columns, copied by ``threads`` threads."""
    qubits = tuple(sorted([*columns, *targets]))
    rows = tuple(place for place, qubit in enumerate(qubits) if qubit in targets)
    others = tuple(place for place in range(len(qubits)) if place not in rows)
    targets_qubit0 = item < CHUNK and rows[0] == 0
    own = _core_rows(rows, targets_qubit0) if kind == "wgmma" else ()
    chunks = [place for place in range(1 if item < CHUNK else 0, len(qubits)) if place not in own]
    count = threads.bit_length() - 1
    return Tile(qubits, rows, others, item, tuple(chunks[:count]), (*own, *chunks[count:]))


def _core_rows(rows: Sequence[int], targets_qubit0: bool) -> tuple[int, ...]:
    """Return the places of the eight rows that a thread writes to a plane as one line (wgmma)."""
    return (rows[-1], rows[-2]) if targets_qubit0 else (rows[-1], rows[-2], rows[-3])


def roles_of(kind: GateKind, tile: Tile) -> Roles:
    """Return the roles of a kernel's bits; of tensor cores as in ``cuda/gates/operands.cuh``."""
    rows, columns, targets_qubit0 = tile.rows, tile.columns, tile.targets_qubit0
    threads = len(tile.thread_places)
    own = tile.thread_places[:_BANK_PLACES]
    if kind == "permute":
        return Roles(patterns=(own,))
    if kind == "fma":
        halves = tile.item < CHUNK and not targets_qubit0
        pair, others = (columns[0], columns[1:]) if halves else (columns[-1], columns[:-1])
        read = others[:threads]
        return Roles(
            read=read, units=others[threads:], pair=pair, patterns=(own, read[:_BANK_PLACES])
        )
    fast = column_order(kind, tile)
    pair = columns[3] if targets_qubit0 else columns[0]
    lane_rows, result_rows = (rows[1:3], rows[1:4]) if targets_qubit0 else (rows[:2], rows[:3])
    further = columns[4:5] if kind == "wgmma" else ()
    results = (fast[1], fast[2], *result_rows, *rows[4:], *columns[4 + len(further) :])
    registers = (fast[0], pair if targets_qubit0 else rows[3], *further)
    if kind == "wgmma":
        return Roles(results=results, registers=registers, patterns=(own,))
    return Roles(
        read=(*lane_rows, *fast, *columns[4:]), pair=pair, results=results, registers=registers,
        patterns=(own, (*lane_rows, fast[0]), results[:_BANK_PLACES]),
    )  # fmt: skip


def column_order(kind: GateKind, tile: Tile) -> tuple[int, int, int]:
    """Return the places of the three bits of a product's column, the lowest first.

    Lanes that write results have the upper two bits, and those of the lowest rows. A warpgroup's
    write to the state: with the lowest columns, 64 bytes or more lie together.
    """
    first = 0 if tile.targets_qubit0 else 1
    low, middle, high = tile.columns[first : first + 3]
    return (high, low, middle) if kind == "wgmma" else (low, middle, high)


def masks_of(tile: Tile, roles: Roles) -> tuple[int, ...]:
    """Return each place's exclusive-or mask of an address in shared memory, in bytes."""
    first = 1 if tile.item < CHUNK else 0
    vectors = _bank_vectors(roles.patterns, first, len(tile.qubits))
    fixed = range(first + _BANK_PLACES)
    return tuple(
        (tile.item << place) ^ (0 if place in fixed else vectors[place] << 4)
        for place in range(len(tile.qubits))
    )


@lru_cache(maxsize=4096)
def _bank_vectors(
    patterns: tuple[tuple[int, ...], ...], first: int, places: int
) -> tuple[int, ...]:
    """Return a vector of three bits for each place that makes those of each pattern independent.

    The three lowest chunk places have the unit vectors. Where no choice serves every pattern, the
    first of those that serve most.
    """
    vectors = [0] * places
    for bit in range(_BANK_PLACES):
        vectors[first + bit] = 1 << bit
    free = sorted({p for pattern in patterns for p in pattern if p >= first + _BANK_PLACES})
    best, most = list(vectors), -1
    for choice in product(range(1, 8), repeat=len(free)):
        for place, vector in zip(free, choice, strict=True):
            vectors[place] = vector
        served = sum(independent([vectors[p] for p in pattern]) for pattern in patterns)
        if served > most:
            best, most = list(vectors), served
        if most == len(patterns):
            break
    return tuple(best)


def independent(vectors: Sequence[int]) -> bool:
    """Return whether no exclusive or of some of these bit vectors is zero."""
    seen = {0}
    for vector in vectors:
        if vector in seen:
            return False
        seen |= {vector ^ other for other in seen}
    return True


def plane_offsets(tile: Tile, operand_bytes: int) -> dict[int, int]:
    """Return each place's offset of a line of eight rows in a plane (wgmma), in bytes."""
    rows, columns, targets_qubit0 = tile.rows, tile.columns, tile.targets_qubit0
    slow = columns[3:5] if targets_qubit0 else (columns[0], columns[4])
    offsets = {place: 16 << bit for bit, place in enumerate((*column_order("wgmma", tile), *slow))}
    core_rows = rows[1:-2] if targets_qubit0 else rows[:-3]
    each = plane_line_bytes(len(rows), targets_qubit0, operand_bytes)
    offsets |= {place: each << bit for bit, place in enumerate(core_rows)}
    return offsets
