"""How tiles of the wgmma family are divided among blocks, and where partial tiles lie in memory.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, lcm

from argand.gemm.sm90.plan import WgmmaPlan
from argand.precision import Precision

_MIN_K_PER_BLOCK = 128
"""Shortest stream-K work of a block, in elements of k: prologue and reduction outweigh less."""
MAX_PARTIAL_TILES = 8
"""Most partial tiles that one block reduces into a tile."""
_RASTER_GROUP_M, _FEW_TILE_COLUMNS = 16, 4
"""As in gemm/sm90_plan.cuh."""
_EXCHANGE_CYCLES = 4200
"""Cycles of products, at the tensor cores' peak, in the time in which blocks wait for the partial
tiles of others: 3.1 us at 1.9 GHz and 0.7 of the peak (`sm90.heuristics` has the constants)."""
OPERAND_BYTES = 4096
"""Bytes of one operand that a multiprocessor's tensor cores multiply and add in a cycle."""


def min_saved_k(plan: WgmmaPlan, precision: Precision) -> int:
    """Return the k of a tile whose products take as long as an exchange of partial tiles.

    Splitting tiles that saves less is slower.
    """
    products = 4 * len(precision.products) * plan.block_m * plan.block_n
    return int(_EXCHANGE_CYCLES * OPERAND_BYTES / (products * precision.operand.bytes))


def raster_group_m(columns: int) -> int:
    """Return the tile rows of a raster group, in a product ``columns`` tiles wide."""
    return 1 if columns <= _FEW_TILE_COLUMNS else _RASTER_GROUP_M


@dataclass(frozen=True)
class TileDivision:
    """The division of tiles among ``blocks``.

    Blocks take ``data_parallel_tiles`` whole, one a block and wave. The ``stream_k_tiles`` after
    them are split along k: each block computes ``k_tiles_per_block`` k-tiles of them, 0 where no
    tile is split.
    """

    blocks: int
    data_parallel_tiles: int
    stream_k_tiles: int = 0
    k_tiles_per_block: int = 0

    @property
    def tiles(self) -> int:
        """All tiles."""
        return self.data_parallel_tiles + self.stream_k_tiles

    def waves(self, num_k_tiles: int) -> float:
        """Return the time of all tiles, in times of one tile of ``num_k_tiles``."""
        whole = -(-self.data_parallel_tiles // self.blocks)
        return whole + self.k_tiles_per_block / max(num_k_tiles, 1)

    def stream_k_blocks(self, num_k_tiles: int) -> int:
        """Return how many blocks compute k-tiles of split tiles."""
        each = self.k_tiles_per_block
        return -(-self.stream_k_tiles * num_k_tiles // each) if each else 0

    def aligned_period(self, num_k_tiles: int) -> int:
        """Return p, so that the work of every p-th block ends where a tile does.

        Such a block leaves no partial tile.
        """
        each = self.k_tiles_per_block
        return lcm(each, num_k_tiles) // each if each else 1

    def partial_tiles(self, num_k_tiles: int) -> int:
        """Return how many partial tiles blocks store for others to reduce, one a block at most."""
        others = max(self.stream_k_blocks(num_k_tiles) - 1, 0)
        return others - others // self.aligned_period(num_k_tiles)

    def shortest_work(self, num_k_tiles: int) -> int:
        """Return the k-tiles of the shortest partial tile, or of a tile where none is split."""
        starts = range(1, self.stream_k_blocks(num_k_tiles))
        cuts = {block * self.k_tiles_per_block % num_k_tiles for block in starts} - {0}
        return min([num_k_tiles, *cuts, *(num_k_tiles - cut for cut in cuts)])


def divide(
    tiles: int,
    max_blocks: int,
    num_k_tiles: int,
    block_k: int,
    max_partial_tiles: int | None = None,
    min_k_tiles: int = 1,
    saved_k: int = 0,
) -> TileDivision:
    """Divide tiles of ``num_k_tiles``, each of ``block_k`` k, among at most ``max_blocks``.

    Where the last wave would keep only some blocks busy, its tiles are split, provided that this
    saves a fifth of a tile's time and ``saved_k``, that no block gets too little work, that each
    partial tile has at least ``min_k_tiles``, and that at most ``max_partial_tiles`` are stored.
    """
    rest = tiles % max_blocks
    least = max(
        -(-rest * num_k_tiles // max_blocks),
        -(-_MIN_K_PER_BLOCK // block_k),
        -(-num_k_tiles // MAX_PARTIAL_TILES),
    )
    most = min(4 * num_k_tiles // 5, num_k_tiles - -(-saved_k // block_k))
    for each in range(least, most + 1) if rest else ():
        found = TileDivision(max_blocks, tiles - rest, rest, each)
        fits = max_partial_tiles is None or found.partial_tiles(num_k_tiles) <= max_partial_tiles
        if fits and found.shortest_work(num_k_tiles) >= min_k_tiles:
            if tiles > rest:
                return found
            return TileDivision(found.stream_k_blocks(num_k_tiles), 0, rest, each)
    return TileDivision(min(tiles, max_blocks), tiles)


@dataclass(frozen=True)
class Tiles:
    """The tiles of ``products``, ``rows`` by ``columns`` each, in the scheduler's order.

    ``triangle`` says that they are those of the lower triangle, as many rows as columns.
    """

    rows: int
    columns: int
    products: int
    triangle: bool = False

    @property
    def each(self) -> int:
        """The tiles of one product."""
        return self.rows * (self.rows + 1) // 2 if self.triangle else self.rows * self.columns

    @property
    def count(self) -> int:
        """All tiles."""
        return self.each * self.products

    def wave_rows(self, blocks: int, block_m: int, block_n: int) -> int:
        """Return how many rows of X and of Y one wave of ``blocks`` tiles of a product reads."""
        height = min(self.rows, raster_group_m(self.columns))
        width = min(-(-blocks // height), self.columns)
        return height * block_m + width * block_n

    def coordinates(self, index: int) -> tuple[int, int, int]:
        """Return product, row and column of tile ``index``, as wgmma_tile_at does in CUDA."""
        product, tile = divmod(index, self.each)
        largest = raster_group_m(self.columns)
        if self.triangle:
            return product, *_triangle_tile(tile, self.rows, largest)
        group, inside = divmod(tile, largest * self.columns)
        height = min(self.rows - group * largest, largest)
        return product, group * largest + inside % height, inside // height

    def first_coordinates(self, first: int) -> tuple[int, int, int]:
        """Return the least product of the tiles from ``first`` on, and its least row and column."""
        found = [self.coordinates(index) for index in range(first, self.count)]
        product = min(tile[0] for tile in found)
        inside = [tile for tile in found if tile[0] == product]
        return product, min(tile[1] for tile in inside), min(tile[2] for tile in inside)


def _triangle_tile(index: int, rows: int, group_rows: int) -> tuple[int, int]:
    """Return the row and the column of a tile, as triangle_tile_at does in CUDA."""
    first = triangle_row(index) // group_rows * group_rows
    inside = index - first * (first + 1) // 2
    height = min(rows - first, group_rows)
    if inside < first * height:
        return first + inside % height, inside // height
    inside -= first * height
    row = triangle_row(inside)
    return first + row, first + inside - row * (row + 1) // 2


def triangle_row(index: int) -> int:
    """Return the row of an element of a triangle that is numbered row by row."""
    return (isqrt(8 * index + 1) - 1) // 2


@dataclass(frozen=True)
class OwnPlanes:
    """Planes that a call packs itself, ``offset`` bytes from the start of its workspace.

    ``tile_bytes`` is the distance from the first row of a tile to that of the next,
    ``product_bytes`` that from product to product, 0 where all share the operand.
    ``is_row_operand`` says that they hold X, else Y.
    """

    offset: int
    tile_bytes: int
    product_bytes: int
    is_row_operand: bool

    def unused(self, tiles: Tiles, first: int) -> int:
        """Return the bytes from the start that tiles from ``first`` on do not read."""
        product, row, column = tiles.first_coordinates(first)
        if not self.product_bytes and product + 1 < tiles.products:
            return 0  # the next product reads all of it
        tile = row if self.is_row_operand else column
        return product * self.product_bytes + tile * self.tile_bytes


@dataclass(frozen=True)
class CallWorkspace:
    """The workspace of a call: ``planes_bytes`` of ``planes``, then partial tiles.

    Partial tiles may take ``partials_capacity`` bytes.
    """

    planes_bytes: int = 0
    partials_capacity: int = 0
    planes: tuple[OwnPlanes, ...] = ()


@dataclass(frozen=True)
class TileSchedule:
    """A division, and where its partial tiles lie: in ``nbytes`` of their own, or over planes.

    ``planes_offset`` is where those planes begin in the call's workspace, None where partial tiles
    have their own memory.
    """

    division: TileDivision
    nbytes: int
    planes_offset: int | None = None

    def launches(self) -> list[tuple[int, dict[str, int]]]:
        """Return each launch's blocks, and the arguments in which it differs from a single launch.

        Split tiles have a launch of their own where partial tiles lie over planes, because whole
        tiles may still read these.
        """
        whole = self.division.data_parallel_tiles
        if self.planes_offset is None:
            return [(self.division.blocks, {})]
        return [
            (self.division.blocks, {"stream_k_tiles": 0, "k_tiles_per_block": 0}),
            (self.division.blocks, {"first_tile": whole, "data_parallel_tiles": 0}),
        ]


def schedule_tiles(
    tiles: Tiles,
    max_blocks: int,
    num_k_tiles: int,
    block_k: int,
    partial_bytes: int,
    workspace: CallWorkspace,
    min_k_tiles: int = 1,
    saved_k: int = 0,
) -> TileSchedule:
    """Divide tiles among at most ``max_blocks`` with a workspace for partial tiles.

    A partial tile takes ``partial_bytes``. Where their capacity is too small, partial tiles lie
    over planes that split tiles no longer read; where those are too small as well, fewer tiles are
    split. Splitting saves at least ``saved_k`` (`min_saved_k`).
    """
    capacity = workspace.partials_capacity
    division = divide(tiles.count, max_blocks, num_k_tiles, block_k, None, min_k_tiles, saved_k)
    nbytes = division.partial_tiles(num_k_tiles) * partial_bytes
    if nbytes <= capacity:
        return TileSchedule(division, nbytes)
    offset = None
    for own in workspace.planes if division.data_parallel_tiles else ():
        unused = own.unused(tiles, division.data_parallel_tiles)
        if unused > capacity:
            capacity, offset = unused, own.offset
    most = capacity // partial_bytes
    division = divide(tiles.count, max_blocks, num_k_tiles, block_k, most, min_k_tiles, saved_k)
    if offset is not None and division.stream_k_tiles:
        return TileSchedule(division, 0, offset)
    return TileSchedule(division, division.partial_tiles(num_k_tiles) * partial_bytes)
