"""How tiles are divided among blocks: all of their stages, once, within the memory for pieces."""

from __future__ import annotations

import pytest
from argand.gemm.sm90_scheduler import Division, OwnPlanes, Tiles, arrange, divide


def pieces(division: Division, steps: int) -> list[list[tuple[int, int, bool]]]:
    """Of each block the split tiles that it has stages of, how many, and whether the last one.

    As schedule_work of gemm/sm90_scheduler.cuh has it.
    """
    found = []
    for block in range(division.blocks):
        begin = block * division.share
        end = min(begin + division.share, division.split * steps)
        inside = range(begin // steps, -(-end // steps)) if begin < end else range(0)
        edges = [(tile, tile * steps, (tile + 1) * steps) for tile in inside]
        found.append([
            (tile, min(end, last) - max(begin, first), end >= last) for tile, first, last in edges
        ])  # fmt: skip
    return found


@pytest.mark.parametrize(
    "tiles", [1, 2, 7, 32, 64, 128, 131, 132, 133, 204, 864, 1024, 4096, 16384]
)
@pytest.mark.parametrize("steps", [1, 3, 8, 13, 32, 128, 512])
def test_every_stage_of_every_tile_is_done_once(tiles: int, steps: int) -> None:
    division = divide(tiles, 132, steps, 32)
    assert division.whole + division.split == tiles
    assert division.blocks <= min(132, max(tiles, 132 if division.split else tiles))
    shares = pieces(division, steps)
    done = [0] * division.split
    for share in shares:
        assert len(share) <= 2
        # One piece may be left to others, one is waited for.
        assert sum(last for _, _, last in share) <= 1
        assert sum(not last for _, _, last in share) <= 1
        for tile, count, _ in share:
            done[tile] += count
    assert done == [steps] * division.split
    if division.split:
        assert division.whole % division.blocks == 0
        assert division.turns(steps) < -(-tiles // 132)


def test_short_or_full_tiles_stay_whole() -> None:
    assert divide(132, 132, 128, 32) == Division(132, 132)
    assert divide(130, 132, 128, 32) == Division(130, 130)  # nothing to be won
    assert divide(72, 132, 4, 32) == Division(72, 72)
    assert divide(864, 132, 128, 32) == Division(132, 792, 72, 70)


@pytest.mark.pairwise
@pytest.mark.parametrize("tiles", [1, 7, 32, 128, 133, 204, 864, 4096])
@pytest.mark.parametrize("steps", [3, 8, 13, 128, 512])
@pytest.mark.parametrize("room", [None, 0, 3, 50])
def test_pieces_that_are_left_have_a_place_each(tiles: int, steps: int, room: int | None) -> None:
    """As partial_memory of gemm/sm90_accumulator_memory.cuh counts them."""
    division = divide(tiles, 132, steps, 32, room)
    period = division.period(steps)
    left = [
        block - block // period
        for block, share in enumerate(pieces(division, steps))
        if any(not last for _, _, last in share)
    ]
    assert left == list(range(division.pieces(steps)))
    assert room is None or len(left) <= room


def test_less_room_splits_less() -> None:
    pieces_of = [divide(100, 132, 128, 32, room).pieces(128) for room in (None, 40, 20, 0)]
    assert pieces_of == sorted(pieces_of, reverse=True)
    assert pieces_of[-1] == 0
    assert divide(100, 132, 128, 32, 0) == Division(100, 100)


TILES = Tiles(32, 32, 1)
"""Those of 4096 x 4096."""
PIECE = 128 * 128 * 8
PLANE = 128 * 4096 * 4
"""A tile's lines in one plane of 3xtf32."""


def test_every_tile_has_one_place() -> None:
    for tiles in (Tiles(5, 3, 4), Tiles(33, 7, 2), Tiles(16, 16, 1), TILES):
        places = {tiles.place(index) for index in range(tiles.count)}
        assert len(places) == tiles.count
        assert max(places) == (tiles.products - 1, tiles.rows - 1, tiles.columns - 1)


def test_pieces_without_room_go_over_planes_that_are_not_read_any_more() -> None:
    rows = OwnPlanes(1024, PLANE, 0, rows=True)
    division = divide(TILES.count, 132, 256, 16)
    found = arrange(TILES, 132, 256, 16, PIECE, 0, (rows,))
    assert (found.division, found.nbytes, found.over) == (division, 0, 1024)
    first, second = found.launches()
    assert first == (132, {"stream_k_tiles": 0, "k_tiles_per_block": 0})
    assert second == (132, {"first_tile": division.whole, "data_parallel_tiles": 0})
    # The last tiles are of the last sixteen rows; those before are free.
    assert rows.unused(TILES, division.whole) == 16 * PLANE
    assert division.pieces(256) * PIECE <= 16 * PLANE


def test_pieces_with_room_have_memory_of_their_own_and_one_launch() -> None:
    division = divide(TILES.count, 132, 256, 16)
    room = division.pieces(256) * PIECE
    found = arrange(TILES, 132, 256, 16, PIECE, room, (OwnPlanes(0, PLANE, 0, rows=True),))
    assert (found.division, found.nbytes, found.over) == (division, room, None)
    assert found.launches() == [(132, {})]


def test_what_is_read_to_the_end_is_not_overwritten() -> None:
    """Tiles of one row each: the last ones read all columns, and all rows of one column."""
    columns = OwnPlanes(0, PLANE, 0, rows=False)
    division = divide(TILES.count, 132, 256, 16)
    assert columns.unused(TILES, division.whole) == TILES.place(division.whole)[2] * PLANE
    narrow = Tiles(200, 1, 1)
    assert columns.unused(narrow, 132) == 0
    shared = OwnPlanes(0, PLANE, 0, rows=True)
    assert shared.unused(Tiles(16, 16, 3), 500) == 0  # product 2 reads what 1 does
    assert shared.unused(Tiles(32, 16, 2), 512 + 256 + 7) == 16 * PLANE
    own = OwnPlanes(0, PLANE, 1 << 30, rows=True)
    assert own.unused(Tiles(16, 16, 3), 500) == (1 << 30) + 4 * PLANE


@pytest.mark.parametrize("room", [0, 5 * PIECE, 50 * PIECE])
def test_without_planes_fewer_tiles_are_split(room: int) -> None:
    for planes in ((), (OwnPlanes(0, 64, 0, rows=True),)):
        found = arrange(TILES, 132, 256, 16, PIECE, room, planes)
        assert found.over is None
        assert found.nbytes == found.division.pieces(256) * PIECE <= room


def test_planes_that_hold_some_pieces_take_as_many() -> None:
    rows, tiles = OwnPlanes(7, 2 * PIECE, 0, rows=True), Tiles(18, 8, 1)
    found = arrange(tiles, 132, 128, 16, PIECE, 3 * PIECE, (rows,))
    assert (found.nbytes, found.over) == (0, 7)
    assert 0 < found.division.pieces(128) <= 32 < divide(tiles.count, 132, 128, 16).pieces(128)
