"""A problem of exact products, and the pieces in which a GPU computes it.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from argand.device import Device
from argand.gemm.families import Family
from argand.gemm.modular.moduli import NORM_BLOCK
from argand.gemm.modular.product_plan import (
    COLUMN_BLOCK,
    TILE_K,
    ResiduePlan,
    plans_of,
)

if TYPE_CHECKING:  # its module needs CuPy
    from argand.runtime.layout import Layout

_PANELS = {"rows": (256, 128), "columns": (768, COLUMN_BLOCK)}
"""Lines of which wide panels have a multiple, whole tiles of every plan, and narrow ones."""
_SLICE_TILES = 8
"""Fewest stages of the mainloop in a split-K slice."""
_MOST_SLICES = 64
"""Most split-K slices: fewer fill a card even with one tile of a few planes."""
_EPILOGUE_TILES = 1
"""Stages that filling the ring and the epilogue of a tile take as long as."""
_ADD_SLICES, _ADD_BYTE = 1e5, 0.012
"""Time of the kernel that adds slices, and of a byte that a kernel moves, in the units of `_times`:
a multiprocessor of an H200 multiplies some 41,000 a microsecond."""
_ANY_BYTES, _TWICE_BYTES = 1 << 28, 1 << 31
"""Workspace that any call may take, and up to which a call may take twice its operands' bytes: in
pieces, products of a millisecond or two would take 4% longer."""
_TILE_COST = {(128, 256): 1.04, (256, 192): 1.0, (128, 128): 1.3, (64, 64): 2.0}
_STACK_COST = {(128, 128): 1.05, (64, 256): 1.0}
"""Time of a tile for each element of it, relative to the largest. That one reads least from L2: at
4096^3 each modulus takes 1 to 2% longer with 128 x 256 (docs/data/h200-exact.csv). Tiles of stacks
have shorter k and an epilogue under the next mainloop."""
_STACK_EPILOGUE_TILES = 4.8
"""Stages that a consumer's epilogue takes as long as, while the other one multiplies."""
_STACK_BYTE = 0.7
"""Time of a byte that a multiprocessor reads from L2, of which it takes some 45 a clock."""


@dataclass(frozen=True)
class ModularProblem:
    """The sizes, layouts and scalars of a call, for arrays at any address.

    ``a`` has the rows of op(A) by k, ``b`` the columns of op(B) as rows by k; a batch stride of 0
    shares the operand. ``c`` is None where beta is 0. ``count`` is that of moduli. ``proved`` says
    that a proof goes with the product: it names A's lines in an error. ``a_packed`` and
    ``b_packed`` say that an operand is planes already.
    """

    dtype: str
    count: int
    batch: int
    a: Layout
    b: Layout
    c: Layout | None
    out: Layout
    conjugate_a: bool
    conjugate_b: bool
    alpha: complex
    beta: complex
    family: Family | None = None
    proved: Literal["row", "column"] | None = None
    a_packed: bool = False
    b_packed: bool = False

    @property
    def pitch(self) -> int:
        """Bytes of a line of planes: k, rounded up to whole stages of the mainloop."""
        return -(-self.a.columns // TILE_K) * TILE_K

    @property
    def k_blocks(self) -> int:
        """Blocks of k that are encoded, the last one maybe a half."""
        return -(-self.a.columns // NORM_BLOCK)

    @property
    def nbytes(self) -> int:
        """Bytes of the operands and the result."""
        lines = sum(x.rows * (self.batch if x.batch_stride else 1) for x in (self.a, self.b))
        return self.a.item * (lines * self.a.columns + self.batch * self.out.rows * self.b.rows)

    def plane_bytes(self) -> tuple[int, int, int]:
        """Bytes of workspace: planes of a row of A, of a column of B, and of a residue."""
        planes = 2 * self.count
        line = planes * self.pitch
        return line * (not self.a_packed), line * (not self.b_packed), planes


@dataclass(frozen=True)
class Piece:
    """Products of a batch, and rows and columns of them, that are computed at a time."""

    first_product: int
    products: int
    first_row: int
    rows: int
    first_column: int
    columns: int

    @property
    def padded(self) -> int:
        """Columns of the residues."""
        return -(-self.columns // COLUMN_BLOCK) * COLUMN_BLOCK


def workspace_limit(problem: ModularProblem) -> int:
    """Return the most bytes of planes and residues that a call takes.

    They are those of its operands and result, for small ones twice as many or 256 MiB.
    """
    return max(_ANY_BYTES, problem.nbytes, min(2 * problem.nbytes, _TWICE_BYTES))


def pieces_of(problem: ModularProblem, limit: int) -> list[Piece]:
    """Cut a problem so that its planes and residues take at most ``limit`` bytes.

    A piece has whole products, all about as many, or where one is too large a panel of its rows,
    or of its columns where these are more: at least 128, whatever the limit. Few products at a
    time, whose planes stay in the L2 cache, take no less time than many: kernels that are so short
    take longer to begin and to end than they save.
    """
    of_a, of_b, of_c = problem.plane_bytes()
    rows, columns = problem.a.rows, problem.b.rows
    padded = -(-columns // COLUMN_BLOCK) * COLUMN_BLOCK
    a_batched, b_batched = bool(problem.a.batch_stride), bool(problem.b.batch_stride)
    shared = of_a * rows * (not a_batched) + of_b * padded * (not b_batched)
    each = of_a * rows * a_batched + of_b * padded * b_batched + of_c * rows * padded
    products = min(problem.batch, max(1, (limit - shared) // each))
    products = -(-problem.batch // -(-problem.batch // products))
    row_step, column_step = rows, columns
    if products == 1 and shared + each > limit:
        if rows >= columns:
            most = (limit - of_b * padded) // (of_a + of_c * padded)
            row_step = _panel(rows, most, *_PANELS["rows"])
        else:
            most = (limit - of_a * rows) // (of_b + of_c * rows)
            column_step = _panel(columns, most, *_PANELS["columns"])
    return [
        Piece(
            first, min(products, problem.batch - first), row, min(row_step, rows - row),
            column, min(column_step, columns - column),
        )
        for first in range(0, problem.batch, products)
        for row in range(0, rows, row_step)
        for column in range(0, columns, column_step)
    ]  # fmt: skip


def _panel(lines: int, most: int, wide: int, narrow: int) -> int:
    """Lines of a panel: all about as many, and no more than ``most`` but for ``narrow`` ones."""
    unit = wide if most >= 2 * wide else narrow
    panels = -(-lines // max(unit, most // unit * unit))
    return -(-lines // (panels * unit)) * unit


def choose_plan(
    problem: ModularProblem, piece: Piece, device: Device, most_slices: int = 1
) -> ResiduePlan:
    """Return the plan of the least time, split along k or not."""

    def time(plan: ResiduePlan) -> float:
        return min(_times(problem, piece, device, plan, most_slices))

    k_tiles = problem.pitch // TILE_K
    plans = plans_of(device.require_arch(), problem.family)
    return min((plan for plan in plans if plan.takes(k_tiles)), key=time)


def choose_slices(
    problem: ModularProblem, piece: Piece, device: Device, plan: ResiduePlan, most: int
) -> int:
    """Return into how many slices k is split: the fewest of the least time, ``most`` at most.

    Each has whole stages of the mainloop, none is empty, and all but the last have as many.
    """
    times = _times(problem, piece, device, plan, most)
    slices = 1 + times.index(min(times))
    k_tiles = problem.pitch // TILE_K
    return -(-k_tiles // -(-k_tiles // slices))


def _times(
    problem: ModularProblem, piece: Piece, device: Device, plan: ResiduePlan, most: int
) -> list[float]:
    """The time of a product by one slice, by two, and so on: whole waves of tiles.

    It is counted in elements of a tile times stages of the mainloop.
    """
    if plan.resident_tiles:
        return [_time_of_stacks(problem, piece, device, plan)]
    tiles = -(-piece.rows // plan.block_m) * -(-piece.padded // plan.block_n)
    tiles *= 2 * problem.count * piece.products
    each = plan.block_m * plan.block_n * _TILE_COST[plan.block_m, plan.block_n]
    k_tiles = problem.pitch // TILE_K
    residues = 2 * problem.count * piece.rows * piece.padded * piece.products
    found = []
    for slices in range(1, max(1, min(most, k_tiles // _SLICE_TILES, _MOST_SLICES)) + 1):
        waves = -(-tiles * slices // device.sm_count)
        added = _ADD_SLICES + _ADD_BYTE * residues * (slices + 1) if slices > 1 else 0.0
        found.append(waves * (-(-k_tiles // slices) + _EPILOGUE_TILES) * each + added)
    return found


def _time_of_stacks(
    problem: ModularProblem, piece: Piece, device: Device, plan: ResiduePlan
) -> float:
    """The time of a product whose columns stay in shared memory: whole waves of stacks of tiles."""
    rows, k_tiles = -(-piece.rows // plan.block_m), problem.pitch // TILE_K
    height = min(rows, plan.stack_tiles)
    stacks = -(-rows // height) * -(-piece.padded // plan.block_n)
    stacks *= 2 * problem.count * piece.products
    # Each consumer's mainloop and epilogue take as long as two mainloops, or longer.
    stages = max(k_tiles, (k_tiles + _STACK_EPILOGUE_TILES) / 2)
    each = plan.block_m * plan.block_n * _STACK_COST[plan.block_m, plan.block_n]
    read = (height * plan.block_m + plan.block_n) * k_tiles * TILE_K * _STACK_BYTE
    return -(-stacks // device.sm_count) * max(height * stages * each, read)
