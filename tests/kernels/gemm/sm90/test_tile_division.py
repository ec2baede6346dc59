"""How tiles are divided among blocks: every k-tile once, within the memory for partial tiles."""

from __future__ import annotations

import pytest
from argand.gemm.sm90.scheduler import (
    CallWorkspace,
    OwnPlanes,
    TileDivision,
    Tiles,
    divide,
    schedule_tiles,
)


def block_work(division: TileDivision, num_k_tiles: int) -> list[list[tuple[int, int, bool]]]:
    """The split tiles of each block, how many of their k-tiles it has, and whether the last one.

    As schedule_work of gemm/sm90_scheduler.cuh has it.
    """
    found = []
    for block in range(division.blocks):
        begin = block * division.k_tiles_per_block
        end = min(begin + division.k_tiles_per_block, division.stream_k_tiles * num_k_tiles)
        inside = range(begin // num_k_tiles, -(-end // num_k_tiles)) if begin < end else range(0)
        edges = [(tile, tile * num_k_tiles, (tile + 1) * num_k_tiles) for tile in inside]
        found.append([
            (tile, min(end, last) - max(begin, first), end >= last) for tile, first, last in edges
        ])  # fmt: skip
    return found


@pytest.mark.each_value
@pytest.mark.parametrize(
    "tiles", [1, 2, 7, 32, 64, 128, 131, 132, 133, 204, 864, 1024, 4096, 16384]
)
@pytest.mark.parametrize("num_k_tiles", [1, 3, 8, 13, 32, 128, 512])
def test_every_k_tile_of_every_tile_is_computed_once(tiles: int, num_k_tiles: int) -> None:
    division = divide(tiles, 132, num_k_tiles, 32)
    assert division.data_parallel_tiles + division.stream_k_tiles == tiles
    assert division.blocks <= min(132, max(tiles, 132 if division.stream_k_tiles else tiles))
    blocks = block_work(division, num_k_tiles)
    done = [0] * division.stream_k_tiles
    for work in blocks:
        assert len(work) <= 2
        # A block stores at most one partial tile and waits for at most one.
        assert sum(last for _, _, last in work) <= 1
        assert sum(not last for _, _, last in work) <= 1
        for tile, count, _ in work:
            done[tile] += count
    assert done == [num_k_tiles] * division.stream_k_tiles
    if division.stream_k_tiles:
        assert division.data_parallel_tiles % division.blocks == 0
        assert division.waves(num_k_tiles) < -(-tiles // 132)


def test_short_or_full_tiles_stay_whole() -> None:
    assert divide(132, 132, 128, 32) == TileDivision(132, 132)
    assert divide(130, 132, 128, 32) == TileDivision(130, 130)  # nothing to be won
    assert divide(72, 132, 4, 32) == TileDivision(72, 72)
    assert divide(864, 132, 128, 32) == TileDivision(132, 792, 72, 70)
    # A block of 70 of 128 k-tiles saves 58 of 32 k.
    assert divide(864, 132, 128, 32, saved_k=58 * 32) == divide(864, 132, 128, 32)
    assert divide(864, 132, 128, 32, saved_k=58 * 32 + 1) == TileDivision(132, 864)


@pytest.mark.pairwise
@pytest.mark.parametrize("tiles", [1, 7, 32, 128, 133, 204, 864, 4096])
@pytest.mark.parametrize("num_k_tiles", [3, 8, 13, 128, 512])
@pytest.mark.parametrize("capacity", [None, 0, 3, 50])
def test_every_partial_tile_has_its_own_place(
    tiles: int, num_k_tiles: int, capacity: int | None
) -> None:
    """As partial_slot of gemm/sm90_accumulator_memory.cuh counts them."""
    division = divide(tiles, 132, num_k_tiles, 32, capacity)
    period = division.aligned_period(num_k_tiles)
    left = [
        block - block // period
        for block, work in enumerate(block_work(division, num_k_tiles))
        if any(not last for _, _, last in work)
    ]
    assert left == list(range(division.partial_tiles(num_k_tiles)))
    assert capacity is None or len(left) <= capacity


def test_less_capacity_splits_less() -> None:
    stored = [
        divide(100, 132, 128, 32, capacity).partial_tiles(128) for capacity in (None, 40, 20, 0)
    ]
    assert stored == sorted(stored, reverse=True)
    assert stored[-1] == 0
    assert divide(100, 132, 128, 32, 0) == TileDivision(100, 100)


TILES = Tiles(32, 32, 1)
"""Those of 4096 x 4096."""
PARTIAL = 128 * 128 * 8
PLANE = 128 * 4096 * 4
"""Bytes of a tile's rows in one plane of 3xtf32."""


def test_every_tile_has_its_own_coordinates() -> None:
    for tiles in (Tiles(5, 3, 4), Tiles(33, 7, 2), Tiles(16, 16, 1), TILES):
        places = {tiles.coordinates(index) for index in range(tiles.count)}
        assert len(places) == tiles.count
        assert max(places) == (tiles.products - 1, tiles.rows - 1, tiles.columns - 1)


def test_partial_tiles_without_capacity_lie_over_planes_that_are_no_longer_read() -> None:
    rows = OwnPlanes(1024, PLANE, 0, is_row_operand=True)
    division = divide(TILES.count, 132, 256, 16)
    found = schedule_tiles(TILES, 132, 256, 16, PARTIAL, CallWorkspace(planes=(rows,)))
    assert (found.division, found.nbytes, found.planes_offset) == (division, 0, 1024)
    first, second = found.launches()
    assert first == (132, {"stream_k_tiles": 0, "k_tiles_per_block": 0})
    assert second == (132, {"first_tile": division.data_parallel_tiles, "data_parallel_tiles": 0})
    # The last tiles are of the last sixteen rows; those before are free.
    assert rows.unused(TILES, division.data_parallel_tiles) == 16 * PLANE
    assert division.partial_tiles(256) * PARTIAL <= 16 * PLANE


def test_partial_tiles_with_capacity_have_memory_of_their_own_and_one_launch() -> None:
    division = divide(TILES.count, 132, 256, 16)
    capacity = division.partial_tiles(256) * PARTIAL
    planes = (OwnPlanes(0, PLANE, 0, is_row_operand=True),)
    workspace = CallWorkspace(partials_capacity=capacity, planes=planes)
    found = schedule_tiles(TILES, 132, 256, 16, PARTIAL, workspace)
    assert (found.division, found.nbytes, found.planes_offset) == (division, capacity, None)
    assert found.launches() == [(132, {})]


def test_what_is_read_to_the_end_is_not_overwritten() -> None:
    """Tiles of one row each: the last ones read all columns, and all rows of one column."""
    columns = OwnPlanes(0, PLANE, 0, is_row_operand=False)
    division = divide(TILES.count, 132, 256, 16)
    assert (
        columns.unused(TILES, division.data_parallel_tiles)
        == TILES.coordinates(division.data_parallel_tiles)[2] * PLANE
    )
    narrow = Tiles(200, 1, 1)
    assert columns.unused(narrow, 132) == 0
    shared = OwnPlanes(0, PLANE, 0, is_row_operand=True)
    assert shared.unused(Tiles(16, 16, 3), 500) == 0  # product 2 reads what 1 does
    assert shared.unused(Tiles(32, 16, 2), 512 + 256 + 7) == 16 * PLANE
    own = OwnPlanes(0, PLANE, 1 << 30, is_row_operand=True)
    assert own.unused(Tiles(16, 16, 3), 500) == (1 << 30) + 4 * PLANE


@pytest.mark.parametrize("capacity", [0, 5 * PARTIAL, 50 * PARTIAL])
def test_without_planes_fewer_tiles_are_split(capacity: int) -> None:
    for planes in ((), (OwnPlanes(0, 64, 0, is_row_operand=True),)):
        workspace = CallWorkspace(partials_capacity=capacity, planes=planes)
        found = schedule_tiles(TILES, 132, 256, 16, PARTIAL, workspace)
        assert found.planes_offset is None
        assert found.nbytes == found.division.partial_tiles(256) * PARTIAL <= capacity


def test_planes_that_hold_some_partial_tiles_take_as_many() -> None:
    rows, tiles = OwnPlanes(7, 2 * PARTIAL, 0, is_row_operand=True), Tiles(18, 8, 1)
    workspace = CallWorkspace(partials_capacity=3 * PARTIAL, planes=(rows,))
    found = schedule_tiles(tiles, 132, 128, 16, PARTIAL, workspace)
    assert (found.nbytes, found.planes_offset) == (0, 7)
    assert (
        0
        < found.division.partial_tiles(128)
        <= 32
        < divide(tiles.count, 132, 128, 16).partial_tiles(128)
    )
