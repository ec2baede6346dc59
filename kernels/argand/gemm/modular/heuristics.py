"""The pieces of exact products, their plans, and how many slices of k: what takes the least time.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from argand.device import Device
from argand.gemm.modular.encode_plan import whole_line_bytes
from argand.gemm.modular.pieces import cuts_of
from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_plan import BLOCK_K, RASTER_ROWS, ResiduePlan, plans_of

_SLICE_TILES = 8
"""Fewest stages of the mainloop in a split-K slice."""
_MAX_SLICES = 64
"""Most split-K slices: fewer fill a card even with one tile of a few planes."""
_EPILOGUE_TILES = 1
"""Time to fill the ring and of a tile's epilogue, in stages of the mainloop."""
_ADD_SLICES = 1e5
"""Time of the kernel that adds slices, in the units of `_times`: a multiprocessor of an H200
multiplies some 41,000 a microsecond."""
_ADD_BYTE = 0.012
"""Time of a byte that a kernel moves, in these units."""
_TILE_COST = {(128, 256): 1.04, (256, 192): 1.0, (128, 128): 1.3, (64, 64): 2.0}
_STACK_COST = {(128, 128): 1.05, (64, 256): 1.0}
"""Time of a tile for each element of it, relative to the largest. That one reads least from L2: at
4096^3 each modulus takes 1 to 2% longer with 128 x 256 (docs/data/h200-exact.csv). Tiles of stacks
have shorter k and an epilogue under the next mainloop."""
_STACK_EPILOGUE_TILES = 4.8
"""Time of a consumer's epilogue while the other one multiplies, in stages of the mainloop."""
_STACK_BYTE = 0.7
"""Time of a byte that a multiprocessor reads from L2, at some 45 bytes a clock."""
_PIECE = 2e5
"""Time in which the kernels of one more piece begin and end (fitted on an H200;
`benchmarks.workspace` times such calls)."""
_AGAIN_BYTE = 0.0025
"""Time of a byte of planes that products read again under their mainloops, fitted likewise."""
_GROUP = 1e5
"""Time in which one more launch of a piece's planes begins and ends."""
_COLUMN_PANELS = 2
"""Factor of the time for planes of A that panels of columns read again: panels of B are encoded
less fast than its whole (docs/experiments/2026-11-26-exact-products.md)."""
_KEPT_BYTES = 1 << 24
"""Bytes of a panel of B in one plane that stay in L2 while all rows are multiplied."""


def choose_pieces(problem: ModularProblem, device: Device, limit: int) -> list[Piece]:
    """Return the pieces of the least time that take at most ``limit`` bytes of workspace."""
    cuts = cuts_of(problem, limit)
    if len(cuts) == 1:
        return cuts[0]
    return min(cuts, key=lambda pieces: _time_of_pieces(problem, pieces, device, limit))


def most_slices(problem: ModularProblem, piece: Piece, limit: int) -> int:
    """Return the split-K slices of a piece that a workspace has room for; there may be none."""
    if piece.plane_groups > 1:
        return 1
    of_a, of_b, of_c = problem.parts(piece.k_parts)[0][1].piece_bytes(piece)
    return (limit - of_a - of_b) // of_c


def _time_of_pieces(
    problem: ModularProblem, pieces: Sequence[Piece], device: Device, limit: int
) -> float:
    """Return a call's time: of products, of bytes that other kernels move, and of their starts."""
    most = most_slices(problem, pieces[0], limit)
    numbers, item, parts = problem.nbytes // problem.a.item, problem.a.item, pieces[0].k_parts
    found = _ADD_BYTE * numbers * (item + 2 * problem.count) + _PIECE * len(pieces) * parts
    found += _GROUP * len(pieces) * (pieces[0].plane_groups - 1)
    if parts > 1:
        residues = problem.plane_bytes()[2] * problem.batch * problem.a.rows * pieces[0].padded
        found += _ADD_BYTE * residues * (parts - 1)
        found += _ADD_BYTE * _bytes_read_again(problem, device)
    found += _ADD_BYTE * _bytes_encoded_again(problem, pieces)
    alike = Counter((x.products, x.rows, x.columns) for x in pieces)
    part = problem.parts(parts)[0][1]
    found += _AGAIN_BYTE * sum(_planes_read_again(problem, x, part.pitch) for x in pieces)
    for (products, rows, columns), times in alike.items():
        piece = Piece(0, products, 0, rows, 0, columns, plane_groups=pieces[0].plane_groups)
        plan = choose_plan(part, piece, device, most)
        found += times * parts * min(_times(part, piece, device, plan, most))
    return found


def _planes_read_again(problem: ModularProblem, piece: Piece, pitch: int) -> int:
    """Return the bytes of planes, of ``pitch`` a line, that a piece reads a second time."""
    of_a, of_b, _ = problem.plane_bytes()
    # Each group of rows that is rasterized together reads the columns again that L2 does not hold.
    groups = -(-piece.rows // RASTER_ROWS) if piece.padded * pitch > _KEPT_BYTES else 1
    of_columns = of_b * piece.padded * (groups - (piece.first_row == 0))
    return of_columns + _COLUMN_PANELS * of_a * piece.rows * (piece.first_column > 0)


def _bytes_encoded_again(problem: ModularProblem, pieces: Sequence[Piece]) -> int:
    """Return the bytes that encoding moves where it encodes lines that it has encoded before."""
    first, of_a, of_b = pieces[0], bool(problem.a.batch_stride), bool(problem.b.batch_stride)
    in_blocks = first.rows < problem.a.rows and first.columns < problem.b.rows
    if not in_blocks and first.k_parts == 1:
        return 0  # of panels of one side it is in the factors above
    lines, before = -problem.lines, None
    for piece in pieces:
        if before is None or piece.rows_of(of_a) != before.rows_of(of_a):
            lines += piece.rows * piece.products
        if before is None or piece.columns_of(of_b) != before.columns_of(of_b):
            lines += piece.columns * piece.products
        before = piece if piece.k_parts == 1 else None
    return max(0, lines) * problem.a.columns * (problem.a.item + 2 * problem.count)


def _bytes_read_again(problem: ModularProblem, device: Device) -> int:
    """Return the bytes of operands that are read for their norms, where k in one part is read once.

    Lines of operands whose k is contiguous are; that others are not is left out.
    """
    capacity = device.require_arch().shared_bytes
    held = whole_line_bytes(problem.a.item, problem.k_blocks, 1) <= capacity
    return (
        problem.nbytes - problem.batch * problem.out.rows * problem.b.rows * problem.a.item
    ) * held


def choose_plan(
    problem: ModularProblem, piece: Piece, device: Device, most_slices: int = 1
) -> ResiduePlan:
    """Return the plan of the least time, split along k or not."""

    def time(plan: ResiduePlan) -> float:
        return min(_times(problem, piece, device, plan, most_slices))

    k_tiles = problem.pitch // BLOCK_K
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
    k_tiles = problem.pitch // BLOCK_K
    return -(-k_tiles // -(-k_tiles // slices))


def _times(
    problem: ModularProblem, piece: Piece, device: Device, plan: ResiduePlan, most: int
) -> list[float]:
    """Return the time of a product by one slice, by two, and so on: whole waves of tiles.

    It is counted in elements of a tile times stages of the mainloop.
    """
    if plan.resident_tiles:
        return [_time_of_stacks(problem, piece, device, plan)]
    tiles = -(-piece.rows // plan.block_m) * -(-piece.padded // plan.block_n)
    tiles *= -(-2 * problem.count // piece.plane_groups) * piece.products
    each = plan.block_m * plan.block_n * _TILE_COST[plan.block_m, plan.block_n]
    k_tiles = problem.pitch // BLOCK_K
    residues = 2 * problem.count * piece.rows * piece.padded * piece.products
    found = []
    for slices in range(1, max(1, min(most, k_tiles // _SLICE_TILES, _MAX_SLICES)) + 1):
        waves = -(-tiles * slices // device.sm_count)
        added = _ADD_SLICES + _ADD_BYTE * residues * (slices + 1) if slices > 1 else 0.0
        waves *= piece.plane_groups
        found.append(waves * (-(-k_tiles // slices) + _EPILOGUE_TILES) * each + added)
    return found


def _time_of_stacks(
    problem: ModularProblem, piece: Piece, device: Device, plan: ResiduePlan
) -> float:
    """Return the time of products whose columns stay in shared memory, by waves of whole stacks."""
    rows, k_tiles = -(-piece.rows // plan.block_m), problem.pitch // BLOCK_K
    height = min(rows, plan.stack_tiles)
    stacks = -(-rows // height) * -(-piece.padded // plan.block_n)
    stacks *= -(-2 * problem.count // piece.plane_groups) * piece.products
    # Each consumer's mainloop and epilogue take as long as two mainloops, or longer.
    stages = max(k_tiles, (k_tiles + _STACK_EPILOGUE_TILES) / 2)
    each = plan.block_m * plan.block_n * _STACK_COST[plan.block_m, plan.block_n]
    read = (height * plan.block_m + plan.block_n) * k_tiles * BLOCK_K * _STACK_BYTE
    return piece.plane_groups * -(-stacks // device.sm_count) * max(height * stages * each, read)
