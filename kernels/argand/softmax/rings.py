"""The choice of a ring, and of clusters in its place, for the longest rows. No GPU, no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from argand.device import Arch
from argand.multiprocessor import CLUSTER_SM
from argand.softmax.candidates import SoftmaxCandidate, ring
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import (
    MAX_EPILOGUE_STAGES,
    MAX_UNPACKED_COLUMNS,
    SoftmaxForm,
    ring_bytes,
    ring_line,
    stages_bytes,
    vector_for,
)

_COLUMNS = {4: 32768, 2: 81920}
"""Longest rows that are not rings, by bytes of a value: registers of a block or of a cluster of two
hold them."""
_COLUMNS_UNALIGNED = 65536
"""The same for packed unaligned rows, which a cluster would stage."""
_LOADED = 2
"""Fewest slices in shared memory that are loaded. Fewer are slower
(docs/experiments/2026-11-22-softmax-wide-rows.md), and more leave smaller slices, so that more
blocks wait for each other."""
_WAITING = 5
"""Fewest slices in shared memory that wait for their sum."""
_WAITING_FEW = 3
"""The same for widened values and for few rows."""
_BUSY = 0.95
"""Smallest fraction of the multiprocessors that a ring takes."""
_MANY_ROWS = 16
"""Rows of each team of blocks from which on a ring may leave multiprocessors idle."""
_MANY_BYTES = 512 << 10
"""Bytes of x for each multiprocessor from which on slices begin on lines: about as many rows."""
_THREADS = ((512, 256), (512, 128))
"""Threads of a ring that reduce and that write, the fastest first: some plans have no registers for
256 that write."""
_FP32_THREADS = (480, 160)
"""Such threads of rows of fp32."""
_FULL = 0.9
"""Fraction of the registers that a slice of fp32 is to fill, since empty ones take instructions."""
_MORE = 1.125
"""A ring may take so many times the blocks that suffice, in order to fill registers."""
_EVEN_ROWS = 64
"""Fewest rows of each of several teams where it does: the rows of the last team then matter
little."""
_FAR = 1.3
"""How many times the next smaller number that keeps multiprocessors busy is far from one."""
_WIDENED_THREADS = ((480, 160), (512, 256), (576, 192))
"""Threads that reduce and that write, of exact exponentials of 16 bits, whose instructions bound a
ring, those of registers without a value included."""
CLUSTER_COLUMNS = 131072
"""The longest rows that go to clusters where there are few: these exchange sums without global
memory."""
MIN_PART = 2048
"""Columns that are worth another block where multiprocessors are idle."""
_ALONE_THREADS = 768
"""Threads of a block that holds a row of fp32 alone."""
_ALONE_COLUMNS = 43008
"""The longest such row."""
_ALONE_ROWS = 8
"""Fewest such rows for each multiprocessor."""
_FEW_THREADS = 192
"""Threads of each block that shares a row of 16 bits with exact exponentials, where rows are few
and a ring's blocks would wait for the first ones."""
_FEW_CLUSTER = 8
"""Blocks that share such a row."""
_FEW_COLUMNS = 92160
"""The longest such row."""


def with_lines(
    form: SoftmaxForm, arch: Arch, *, rows: int, columns: int, even: int, sm_count: int
) -> SoftmaxForm:
    """Return the form, with unaligned rows where a ring's slices would begin within lines.

    ``even`` is the most columns, up to a line, that divide where rows begin and end. Slices of
    unaligned rows begin on lines of memory: else two warps write parts of one line, and, where
    ``even`` is less than a sector, parts of one sector. Instructions bound widened values, and
    masks take some.
    """
    no_ring = (
        columns <= _longest_without_ring(form, columns)
        or arch.sm < CLUSTER_SM
        or rows * columns * ELEMENT_BYTES[form.input] < sm_count * _MANY_BYTES
        or form.vector < vector_for(form.input, form.written)
    )
    if no_ring or form.widened or form.operation == "logsumexp" or even % ring_line(form) == 0:
        return form
    return replace(form, unaligned_rows=True)


def ring_candidates(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> Iterator[SoftmaxCandidate]:
    """Yield rings of the fewest blocks whose shared memory holds the slices and fills the card.

    A block alone goes before them for many rows of fp32, and a cluster for a few rows of 16 bits.
    Rows that need no ring have no candidates here. Many unaligned rows of exact exponentials of 16
    bits need one from where registers of two blocks do not hold them.
    """
    many = rows >= _MANY_ROWS * sm_count
    cut = many and form.widened and form.unaligned_rows
    if columns <= (MAX_UNPACKED_COLUMNS if cut else _longest_without_ring(form, columns)):
        return
    held = [
        count
        for count in _divisors(sm_count)
        if _has_room(form, arch, columns, count, _WAITING_FEW)
    ] or [sm_count]
    if rows * held[0] < sm_count and columns <= CLUSTER_COLUMNS:
        return
    if form.input == "fp32" and columns <= _ALONE_COLUMNS and rows >= sm_count * _ALONE_ROWS:
        yield SoftmaxCandidate(_ALONE_THREADS, 1)
    few = rows <= sm_count * (2 if form.unaligned_rows else 1)
    if few and form.widened and columns <= _FEW_COLUMNS:
        yield SoftmaxCandidate(_FEW_THREADS, _FEW_CLUSTER)
    # Few rows would leave multiprocessors idle.
    enough = (
        count for count in held if rows * count >= sm_count or columns // count < 2 * MIN_PART
    )
    of_many = None
    if not form.widened and rows * held[0] >= _MANY_ROWS * sm_count:
        of_many = _blocks_of_many(form, arch, rows, columns, sm_count)
    blocks = of_many or next(enough, held[-1])
    for threads, write_threads in _threads(form, arch, blocks, columns):
        yield SoftmaxCandidate(
            threads, blocks, epilogue_stages=MAX_EPILOGUE_STAGES, write_threads=write_threads
        )


def _divisors(sm_count: int) -> list[int]:
    """Return the numbers of blocks of a team that leave no multiprocessor idle."""
    return [count for count in range(1, sm_count + 1) if sm_count % count == 0]


def _has_room(form: SoftmaxForm, arch: Arch, columns: int, count: int, waiting: int) -> bool:
    """Return whether ``count`` blocks hold their slices of rows while ``waiting`` of those wait."""
    needed = stages_bytes(form, -(-columns // count), load=_LOADED, epilogue=waiting)
    return needed <= ring_bytes(arch, 1)


def _blocks_of_many(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> int | None:
    """Return the blocks that share one of many rows; None where no blocks have room for it."""
    busy = [n for n in range(1, sm_count + 1) if sm_count % n <= (1 - _BUSY) * sm_count]
    count = next((n for n in busy if _has_room(form, arch, columns, n, _WAITING)), None)
    if count is None:
        return None
    if form.input == "fp32":
        before = max((n for n in busy if n < count), default=count)
        if count > _FAR * before and _has_room(form, arch, columns, before, _WAITING_FEW):
            return before  # slices are much smaller than need be
        return _filling_blocks(form, arch, rows, columns, busy, count)
    if sm_count % count and _has_room(form, arch, columns, count, _WAITING + 1):
        # Slices are smaller than need be, because the count before is far, and blocks idle.
        for fewer in _divisors(sm_count):
            if fewer < count and _has_room(form, arch, columns, fewer, _WAITING - 1):
                return fewer
    return count


def _filling_blocks(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, busy: list[int], count: int
) -> int:
    """Return ``count`` blocks of a row of fp32, or few more whose slices fill registers.

    ``busy`` has the numbers of blocks that leave few multiprocessors idle, all of them the last.
    """

    def fills(blocks: int) -> bool:
        threads = _FP32_THREADS[0]
        plan = ring(form, arch, SoftmaxCandidate(threads, blocks), columns)
        return plan.slice_columns >= _FULL * threads * plan.values

    for more in busy:
        teams = busy[-1] // more
        even = teams > 1 and rows >= _EVEN_ROWS * teams
        if count <= more <= _MORE * count and fills(more) and (even or more == count):
            return more
    return count


def _threads(form: SoftmaxForm, arch: Arch, blocks: int, columns: int) -> list[tuple[int, int]]:
    """Return the threads that reduce and that write, the fastest first."""

    def registers(threads: tuple[int, int]) -> int:
        candidate = SoftmaxCandidate(threads[0], blocks)
        return threads[0] * ring(form, arch, candidate, columns).values

    if form.widened:
        return [*sorted(_WIDENED_THREADS, key=registers), *_THREADS]
    return [_FP32_THREADS, *_THREADS] if form.input == "fp32" else list(_THREADS)


def _longest_without_ring(form: SoftmaxForm, columns: int) -> int:
    """Return the longest rows that are not rings, ``columns`` where none are."""
    if form.packed and form.unaligned_rows:
        return _COLUMNS_UNALIGNED
    return _COLUMNS.get(form.value_bytes, columns)
