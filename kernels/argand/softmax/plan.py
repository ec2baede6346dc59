"""Form and plan of a softmax kernel. Needs no GPU and no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from argand.device import Arch
from argand.multiprocessor import RESERVED_BYTES, WARP
from argand.precision import HALF_FORMATS, Precision
from argand.softmax.formats import ELEMENT_BYTES, Operation

SMALL_BLOCK = 128
"""Threads of a block whose warps, or lanes, work on different rows."""
STATIC_BYTES = 4 * 1024
"""Shared memory of a block beside its stages, with the kilobyte that the system reserves."""
MAX_LOAD_STAGES, MAX_EPILOGUE_STAGES = 8, 6
"""Most stages of a ring: rows that TMA copies at a time, and rows that wait for their sum."""
_GRAIN_BYTES, _LINE = 16, 8
LINE_BYTES = _LINE * _GRAIN_BYTES
"""A line of memory has eight accesses of 16 bytes. A block's part of a row begins at a line."""
_EXCHANGE_SLOTS, _PARTIAL_BYTES = 2 * MAX_EPILOGUE_STAGES, 16
"""``kExchangeSlots`` and ``sizeof(RowPartial)`` of ``cuda/softmax/exchange.cuh``."""


MAX_UNPACKED_COLUMNS = 20480
"""The longest rows whose exact exponentials of 16-bit values registers of two blocks of a
multiprocessor hold. Longer aligned ones stay packed and are computed twice; unaligned ones are
faster as fp32 in two blocks."""


@dataclass(frozen=True)
class SoftmaxForm:
    """Template parameters that follow from a call: operation, kinds of x and out, precision.

    ``vector`` is the number of values of a memory access, ``unaligned_rows`` whether rows may begin
    or end within such a vector, ``unit_scale`` whether the scale of the exponents is 1, ``gapless``
    whether each row of x, and of a result that has rows, begins where the one before it ends.
    """

    operation: Operation
    input: str
    output: str
    precision: Precision
    vector: int
    unaligned_rows: bool
    unit_scale: bool = True
    gapless: bool = False

    @cached_property
    def compute_fp64(self) -> bool:
        """Whether the computation is in fp64."""
        return self.precision.real_output == "float64"

    @cached_property
    def half(self) -> bool:
        """Whether values have 16 bits, as in memory, because they are not rounded."""
        return (
            self.input in HALF_FORMATS and self.precision.exact_operands and not self.compute_fp64
        )

    @cached_property
    def packed(self) -> bool:
        """Whether two values share a register of any plan but slabs (`RowPlan.packed`)."""
        return self.half and self.approximate

    @cached_property
    def widened(self) -> bool:
        """Whether values of 16 bits have exact exponentials, which take fp32 to hold."""
        return self.half and not self.approximate

    @cached_property
    def approximate(self) -> bool:
        """Whether exponentials are those of `ex2.approx`, not within an ulp of fp32.

        Results of 16 bits need no others, nor do those of values that are off by 2^-12 already, nor
        logarithms, whose absolute error is the relative one of the sum.
        """
        rounded = not self.precision.exact_operands and self.precision.terms == 1
        return not self.compute_fp64 and (
            rounded or self.operation != "softmax" or self.output in HALF_FORMATS
        )

    @cached_property
    def value_bytes(self) -> int:
        """Bytes of a value in the registers of resident and streamed rows."""
        return 8 if self.compute_fp64 else 2 if self.packed else 4

    @cached_property
    def written(self) -> str:
        """The kind of the rows that are written; logsumexp writes none."""
        return self.input if self.operation == "logsumexp" else self.output

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of the wider of the elements of x and of a written row."""
        return max(ELEMENT_BYTES[self.input], ELEMENT_BYTES[self.written])


@dataclass(frozen=True)
class RowPlan:
    """A kernel's plan: threads that share a row, and values that they hold.

    Attributes:
        row_threads: threads of one block that share a row: 1 to 32 lanes of a warp, or, above that,
            all of the block; in a ring the threads of the reduce warps.
        block_threads: threads of a block, in a ring with those of its other warps.
        values: values that a thread holds at a time.
        cluster: blocks that share a row: a cluster, or, in a ring, any blocks of the grid.
        resident: whether the threads hold a whole row, which is then read once.
        staged: whether rows are resident, and persistent clusters copy the next row into shared
            memory meanwhile.
        blocks: blocks per multiprocessor; the registers of a thread are limited for that many.
        load_stages: rows that TMA copies at a time into a ring; 0: no ring.
        epilogue_stages: rows of a ring that wait in shared memory for their sum.
        slice_columns: columns of a row that a block of a ring has.
        arrive_per_lane: whether every lane arrives at the mbarriers of a ring, so that
            compute-sanitizer's racecheck sees the order.
        slab_stages: slabs of a slab plan in the shared memory of a warp, or of a block where
            threads of several warps share a row; 0: no slabs.
        bulk: whether a slab plan copies by TMA's bulk copies, in place of accesses by all threads.
    """

    row_threads: int
    block_threads: int
    values: int
    cluster: int
    resident: bool
    staged: bool
    blocks: int
    load_stages: int = 0
    epilogue_stages: int = 0
    slice_columns: int = 0
    arrive_per_lane: bool = False
    slab_stages: int = 0
    bulk: bool = False

    @property
    def slab(self) -> bool:
        """Whether warps or blocks work on slabs of whole rows in shared memory."""
        return self.slab_stages > 0

    @property
    def ring(self) -> bool:
        """Whether it is a ring of stages."""
        return self.load_stages > 0

    def packed(self, form: SoftmaxForm) -> bool:
        """Return whether two values of 16 bits share a register.

        They do where exponentials are cheap enough to compute twice, and where unpacked ones of a
        long row would leave a multiprocessor one block. Lanes of a slab load them one by one.
        """
        if not form.half or self.slab:
            return False
        held = self.row_threads * self.cluster * self.values
        register_rows = self.resident and not (self.ring or form.unaligned_rows)
        return form.approximate or (register_rows and held > MAX_UNPACKED_COLUMNS)

    @property
    def kind(self) -> str:
        """Kind of plan: ring, slab, staged, resident or streamed."""
        if self.ring:
            return "ring"
        if self.slab:
            return "slab"
        return "staged" if self.staged else "resident" if self.resident else "streamed"

    @property
    def persistent(self) -> bool:
        """Whether a launch has as many blocks as are resident, which loop over rows."""
        return self.staged or self.ring or self.slab

    def shared_bytes(self, form: SoftmaxForm) -> int:
        """Return the dynamic shared memory of a block."""
        if self.ring:
            return stages_bytes(
                form, self.slice_columns, load=self.load_stages, epilogue=self.epilogue_stages
            )
        if self.slab:
            team = max(WARP, self.row_threads)
            stage = slab_bytes(form, team * self.values)
            return self.block_threads // team * self.slab_stages * stage
        return self.block_threads * self.values * ELEMENT_BYTES[form.input] * self.staged

    @property
    def rows_a_block(self) -> int:
        """Rows of a block at a time."""
        return 1 if self.ring else self.block_threads // self.row_threads

    def exchange_bytes(self, groups: int) -> int:
        """Return the global memory through which groups of a ring's blocks exchange partials."""
        return groups * (_EXCHANGE_SLOTS * self.cluster * _PARTIAL_BYTES + 16) * (self.cluster > 1)


def stages_bytes(form: SoftmaxForm, columns: int, *, load: int, epilogue: int) -> int:
    """Return the bytes of a ring's stages for slices of ``columns``.

    ``load`` stages have the elements of x, ``epilogue`` stages values as registers hold them.
    """

    def of(each: int) -> int:
        return -(-columns * each // LINE_BYTES) * LINE_BYTES

    return load * of(ELEMENT_BYTES[form.input]) + epilogue * of(form.value_bytes)


def slab_bytes(form: SoftmaxForm, values: int) -> int:
    """Return the bytes of a stage for a slab of ``values`` values."""
    return values * form.element_bytes + _GRAIN_BYTES


def ring_block(threads: int, write_threads: int, cluster: int) -> int:
    """Return a ring block's threads, with ``threads`` to reduce and ``write_threads`` to write.

    Load, publish and, where blocks share rows, gather have a warp each beside them.
    """
    return threads + write_threads + (2 + (cluster > 1)) * WARP


def ring_grain(form: SoftmaxForm) -> int:
    """Return how many columns are 16 bytes; the copies of a ring are multiples of them."""
    return _GRAIN_BYTES // ELEMENT_BYTES[form.input]


def ring_line(form: SoftmaxForm) -> int:
    """Return how many columns are a line of memory; the slices of a ring are multiples of them."""
    return _LINE * ring_grain(form)


def row_line(form: SoftmaxForm, threads: int) -> int:
    """Return the alignment, in columns, of the part of a row that ``threads`` of a block hold."""
    return form.vector * (_LINE if threads > WARP else 1)


def ring_bytes(arch: Arch, blocks: int) -> int:
    """Return the shared memory of a block for a ring's stages, with ``blocks`` a multiprocessor."""
    return (arch.shared_bytes + RESERVED_BYTES) // blocks - STATIC_BYTES


def vector_for(input_kind: str, output_kind: str) -> int:
    """Return how many values an access has: 16 bytes of the wider of the two elements."""
    return _GRAIN_BYTES // max(ELEMENT_BYTES[input_kind], ELEMENT_BYTES[output_kind])
