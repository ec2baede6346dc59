"""How tiles of the wgmma family are divided among blocks, and where the sums of their pieces go.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

_LEAST_SHARE = 128
"""Of k, below which a share would be all beginning and end."""
MOST_PARTIAL_TILES = 8
"""Of a tile: one block adds all of them up."""
_TILE_GROUP, _FEW_TILES = 16, 4
"""As in gemm/sm90_plan.cuh."""


def tile_group(columns: int) -> int:
    """Rows of tiles that are gone through together, of a product so many tiles wide."""
    return 1 if columns <= _FEW_TILES else _TILE_GROUP


@dataclass(frozen=True)
class Division:
    """How tiles are divided among ``blocks``.

    ``whole`` tiles are taken in turns. ``split`` more are cut along k, and each block takes
    ``share`` stages of them; without any, ``share`` is 0.
    """

    blocks: int
    whole: int
    split: int = 0
    share: int = 0

    def turns(self, steps: int) -> float:
        """How long it takes, in times of one tile of ``steps`` stages."""
        return -(-self.whole // self.blocks) + self.share / max(steps, 1)

    def shares(self, steps: int) -> int:
        """How many blocks have a share."""
        return -(-self.split * steps // self.share) if self.share else 0

    def period(self, steps: int) -> int:
        """Every so many shares one ends where a tile does, and leaves nothing to others."""
        return lcm(self.share, steps) // self.share if self.share else 1

    def pieces(self, steps: int) -> int:
        """How many blocks leave sums to others."""
        others = max(self.shares(steps) - 1, 0)
        return others - others // self.period(steps)

    def shortest(self, steps: int) -> int:
        """Stages of the shortest piece of a tile, or of a whole tile."""
        cuts = {share * self.share % steps for share in range(1, self.shares(steps))} - {0}
        return min([steps, *cuts, *(steps - cut for cut in cuts)])


def divide(
    tiles: int, most: int, steps: int, depth: int, pieces: int | None = None, shortest: int = 1
) -> Division:
    """Divide tiles of ``steps`` stages of ``depth`` k among at most ``most`` blocks.

    Where the last turn would keep only some of them busy, its tiles are split, as long as that
    saves a fifth of a tile's time, shares do not become too small, no piece is of less than
    ``shortest`` stages, and no more than ``pieces`` are left to other blocks.
    """
    rest = tiles % most
    least = max(
        -(-rest * steps // most), -(-_LEAST_SHARE // depth), -(-steps // MOST_PARTIAL_TILES)
    )
    for share in range(least, 4 * steps // 5 + 1) if rest else ():
        found = Division(most, tiles - rest, rest, share)
        if found.shortest(steps) >= shortest and (pieces is None or found.pieces(steps) <= pieces):
            return found if tiles > rest else Division(found.shares(steps), 0, rest, share)
    return Division(min(tiles, most), tiles)


@dataclass(frozen=True)
class Tiles:
    """The tiles of ``products``: ``rows`` by ``columns`` each, in the order in which blocks go."""

    rows: int
    columns: int
    products: int

    @property
    def count(self) -> int:
        """All of them."""
        return self.rows * self.columns * self.products

    def turn_lines(self, blocks: int, block_m: int, block_n: int) -> int:
        """Lines of both operands that so many tiles read which follow each other in one product."""
        height = min(self.rows, tile_group(self.columns))
        width = min(-(-blocks // height), self.columns)
        return height * block_m + width * block_n

    def place(self, index: int) -> tuple[int, int, int]:
        """Product, row and column of tile number ``index``: wgmma_tile_at."""
        product, tile = divmod(index, self.rows * self.columns)
        most = tile_group(self.columns)
        group, inside = divmod(tile, most * self.columns)
        height = min(self.rows - group * most, most)
        return product, group * most + inside % height, inside // height

    def first_used(self, first: int) -> tuple[int, int, int]:
        """The least product that tiles from number ``first`` on have, and in it their least row
        and column.
        """  # noqa: D205
        places = [self.place(index) for index in range(first, self.count)]
        product = min(place[0] for place in places)
        there = [place for place in places if place[0] == product]
        return product, min(place[1] for place in there), min(place[2] for place in there)


@dataclass(frozen=True)
class OwnPlanes:
    """Planes that a call has packed itself, ``at`` so many bytes from the start of its memory.

    ``tile_bytes`` are from the first line of a tile to that of the next, ``product_bytes`` from
    product to product, 0 where all share the operand. ``rows`` says that it is the row operand.
    """

    at: int
    tile_bytes: int
    product_bytes: int
    rows: bool

    def unused(self, tiles: Tiles, first: int) -> int:
        """Bytes from the start that tiles from number ``first`` on do not read."""
        product, row, column = tiles.first_used(first)
        if not self.product_bytes and product + 1 < tiles.products:
            return 0  # the next product reads all of it
        return product * self.product_bytes + (row if self.rows else column) * self.tile_bytes


@dataclass(frozen=True)
class Memory:
    """A call's memory: ``taken`` bytes at its start are ``planes``, and ``room`` more may be."""

    taken: int = 0
    room: int = 0
    planes: tuple[OwnPlanes, ...] = ()


@dataclass(frozen=True)
class Arrangement:
    """A division, and where its pieces lie: in ``nbytes`` of their own, or ``over`` planes.

    ``over`` is from the start of the call's memory. Split tiles then have a launch of their own,
    since whole ones may still read the planes.
    """

    division: Division
    nbytes: int
    over: int | None = None

    def launches(self) -> list[tuple[int, dict[str, int]]]:
        """Of each launch its blocks, and the arguments in which it differs from one of everything.

        Split tiles have one of their own where their pieces go over planes that others read.
        """
        whole = self.division.whole
        if self.over is None:
            return [(self.division.blocks, {})]
        return [
            (self.division.blocks, {"stream_k_tiles": 0, "k_tiles_per_block": 0}),
            (self.division.blocks, {"first_tile": whole, "data_parallel_tiles": 0}),
        ]


def arrange(
    tiles: Tiles,
    most: int,
    steps: int,
    depth: int,
    piece: int,
    room: int,
    planes: Sequence[OwnPlanes] = (),
    shortest: int = 1,
) -> Arrangement:
    """Divide tiles among at most ``most`` blocks with at most ``room`` bytes for their pieces.

    ``piece`` is the bytes of one. What does not fit goes over planes that are no longer read; where
    that is not enough either, fewer tiles are split.
    """
    division = divide(tiles.count, most, steps, depth, None, shortest)
    if division.pieces(steps) * piece <= room:
        return Arrangement(division, division.pieces(steps) * piece)
    over = None
    for own in planes if division.whole else ():
        unused = own.unused(tiles, division.whole)
        if unused > room:
            room, over = unused, own.at
    division = divide(tiles.count, most, steps, depth, room // piece, shortest)
    if over is not None and division.split:
        return Arrangement(division, 0, over)
    return Arrangement(division, division.pieces(steps) * piece)
