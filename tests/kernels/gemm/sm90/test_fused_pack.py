"""Fused packing: every row is packed once, and before a tile needs it."""

from __future__ import annotations

from collections import Counter

import pytest
from argand import PRECISIONS
from argand.gemm.pack.plan import pitch_of
from argand.gemm.sm90.fused_pack import FusedPack, plan_fused_pack
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision, Tiles, divide, raster_group_m
from argand.gemm.sm90.source import wgmma_source

from tests.kernels.gemm.plans_in_cuda import compile_plans, plan_in_cuda

K_BLOCK = 256  # kPackBlockK of gemm/sm90_fused_pack.cuh
WARPS = 3
TRIANGLE = WgmmaPlan(
    2, 128, 32, 3, storage="planar", triangle=True, conjugate_y=True, fused_pack=True
)


def units(fused: FusedPack, plan: WgmmaPlan, k: int) -> list[tuple[int, int, int, int]]:
    """(wave, panel, k-block, row of units) of each unit, as gemm/sm90_fused_pack.cuh has it."""
    k_blocks, unit_rows = -(-pitch_of(k) // K_BLOCK), plan.block_n // fused.rows
    each = fused.panels_per_wave * k_blocks * unit_rows
    found = []
    for unit in range(fused.panels * k_blocks * unit_rows):
        number, inside = divmod(unit, each)
        first = number * fused.panels_per_wave
        count = min(fused.panels_per_wave, fused.panels - first)
        which, unit_row = divmod(inside, unit_rows)
        found.append((number, first + which % count, which // count, unit_row))
    return found


@pytest.mark.pairwise
@pytest.mark.parametrize("blocks", [1, 7, 64, 132])
@pytest.mark.parametrize(
    ("rows", "columns", "k", "batches"),
    [(1, 1, 1, 1), (512, 512, 512, 1), (1024, 1024, 1024, 5), (4096, 256, 256, 9),
     (130, 700, 300, 3), (8192, 8192, 1024, 1), (5000, 64, 64, 11)],
)  # fmt: skip
@pytest.mark.parametrize("plan", [WgmmaPlan(2, 128, 32, 3), WgmmaPlan(1, 32, 32, 6)], ids=str)
def test_units(plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int) -> None:
    fused = plan_fused_pack(plan, rows, columns, k, batches, blocks)
    found = units(fused, plan, k)
    k_blocks, unit_rows = -(-pitch_of(k) // K_BLOCK), plan.block_n // fused.rows
    assert plan.block_n % fused.rows == 0
    assert fused.counters == fused.panels * k_blocks + 1
    assert fused.panels == batches * -(-columns // plan.block_n)
    counted = Counter((panel, k_block) for _, panel, k_block, _ in found)
    assert set(counted.values()) == {unit_rows}
    assert len(counted) == fused.panels * k_blocks
    assert len(set(found)) == len(found)


def has_own_wave(tiles: Tiles, blocks: int) -> bool:
    """Whether each wave is of one triangle, whose other tiles follow: as gemm/triangle.cuh has it.

    They are at most a sixteenth of a wave.
    """
    return tiles.triangle and 0 < 16 * (tiles.each - blocks) <= blocks


def number_in_order(tiles: Tiles, index: int, blocks: int) -> int:
    """The number among all tiles, product after product, of the one that is computed as index."""
    if not has_own_wave(tiles, blocks):
        return index
    if index < tiles.products * blocks:
        product, tile = divmod(index, blocks)
    else:
        product, tile = divmod(index - tiles.products * blocks, tiles.each - blocks)
        tile += blocks
    return product * tiles.each + tile


def panels_of(tiles: Tiles, plan: WgmmaPlan, index: int, blocks: int) -> set[int]:
    """The panels that a tile reads: of its columns, and where rows are the same planes of those."""
    product, row, column = tiles.coordinates(number_in_order(tiles, index, blocks))
    return {product * tiles.columns + line for line in (column, row)[: 1 + plan.conjugate_y]}


def first_tiles(tiles: Tiles, plan: WgmmaPlan, blocks: int) -> dict[int, int]:
    """The first tile that reads each panel."""
    found: dict[int, int] = {}
    for index in range(tiles.count):
        for panel in panels_of(tiles, plan, index, blocks):
            found.setdefault(panel, index)
    return found


class Loading:
    """One block's loads: (wave, panels, k-block), tile after tile, and how far it is."""

    def __init__(
        self, block: int, tiles: Tiles, plan: WgmmaPlan, division: TileDivision, k_tiles: int
    ):
        of_k_block = K_BLOCK // plan.block_k
        self.k_blocks = -(-k_tiles // of_k_block)
        self.entries: list[tuple[int, set[int], int]] = []
        works = [
            (index, 0, k_tiles)
            for index in range(block, division.data_parallel_tiles, division.blocks)
        ]
        begin = block * division.k_tiles_per_block
        end = min(begin + division.k_tiles_per_block, division.stream_k_tiles * k_tiles)
        if begin < end:  # partial tiles that are given away come first: schedule_work
            first, last = begin // k_tiles, (end - 1) // k_tiles
            order = [last, first] if last > first else [first]
            works += [
                (
                    division.data_parallel_tiles + tile,
                    max(begin - tile * k_tiles, 0),
                    min(end - tile * k_tiles, k_tiles),
                )
                for tile in order
            ]
        for wave, (index, first_k_tile, last_k_tile) in enumerate(works):
            panels = panels_of(tiles, plan, index, division.blocks)
            for k_block in range(first_k_tile // of_k_block, (last_k_tile - 1) // of_k_block + 1):
                self.entries.append((wave, panels, k_block))
        self.at = 0

    @property
    def loaded(self) -> int:
        """In k-blocks of its tiles; without end when all are loaded."""
        if self.at == len(self.entries):
            return 1 << 30
        wave, _, k_block = self.entries[self.at]
        return wave * self.k_blocks + k_block


@pytest.mark.each_value
@pytest.mark.parametrize("blocks", [7, 128, 132])
@pytest.mark.parametrize(
    ("rows", "columns", "k", "batches"),
    [(1024, 1024, 1024, 12), (4096, 256, 256, 12), (8192, 512, 512, 9), (2048, 1100, 4096, 1),
     (70, 900, 600, 40), (300, 300, 1100, 30), (1024, 700, 520, 11), (600, 1700, 256, 12),
     (600, 1700, 512, 12), (2048, 1700, 256, 8)],
)  # fmt: skip
def test_loading_and_packing_never_wait_for_each_other(
    rows: int, columns: int, k: int, batches: int, blocks: int
) -> None:
    assert_all_is_loaded(WgmmaPlan(2, 128, 32, 3), rows, columns, k, batches, blocks)


@pytest.mark.each_value
@pytest.mark.parametrize("blocks", [7, 128, 132])
@pytest.mark.parametrize(
    ("rows", "k", "batches"),
    [(2048, 1100, 4), (1930, 2048, 40), (3072, 2048, 4), (4224, 2048, 2), (300, 2048, 60),
     (1920, 1100, 5), (2177, 600, 3), (128, 520, 140), (1200, 2048, 1)],
)  # fmt: skip
def test_loading_and_packing_of_triangles_never_wait_for_each_other(
    rows: int, k: int, batches: int, blocks: int
) -> None:
    """Some have several waves of panels in a wave of tiles."""
    assert_all_is_loaded(TRIANGLE, rows, rows, k, batches, blocks)


def assert_all_is_loaded(
    plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int
) -> None:
    """Every thread that is ready goes on until none is: then all is loaded.

    The order does not matter, because a condition that holds once holds ever after.
    """
    row_tiles, column_tiles = -(-rows // plan.block_m), -(-columns // plan.block_n)
    tiles = Tiles(row_tiles, column_tiles, batches, plan.triangle)
    k_tiles = -(-k // plan.block_k)
    division = divide(tiles.count, blocks, k_tiles, plan.block_k, min_k_tiles=2)
    fused = plan_fused_pack(plan, rows, columns, k, batches, division.blocks)
    k_blocks, unit_rows = -(-pitch_of(k) // K_BLOCK), plan.block_n // fused.rows
    first = first_tiles(tiles, plan, division.blocks)
    loading = [Loading(block, tiles, plan, division, k_tiles) for block in range(division.blocks)]

    def needed(wave: int, k_block: int) -> int:
        found = first[wave * fused.panels_per_wave] // division.blocks * k_blocks + k_block
        following = first.get((wave + 1) * fused.panels_per_wave)
        if plan.triangle and following is not None:
            return min(found, following // division.blocks * k_blocks)
        return found

    every, workers = units(fused, plan, k), division.blocks * WARPS
    warps = list(range(workers))  # the unit that each is at
    packed: Counter[tuple[int, int]] = Counter()
    moved = True
    while moved:
        moved = False
        for block, own in enumerate(loading):
            while own.at < len(own.entries):
                _, panels, k_block = own.entries[own.at]
                if any(packed[panel, k_block] < unit_rows for panel in panels):
                    break
                own.at += 1
                moved = True
            for warp in range(WARPS * block, WARPS * (block + 1)):
                while warps[warp] < len(every):
                    number, panel, k_block, _ = every[warps[warp]]
                    if own.loaded < needed(number, k_block) - fused.maximum_lead:
                        break
                    packed[panel, k_block] += 1
                    warps[warp] += workers
                    moved = True
    assert all(own.at == len(own.entries) for own in loading)
    assert min(warps) >= len(every)


@pytest.mark.parametrize("rows", [1, 4, 5, 16, 17, 40])
def test_cuda_finds_the_first_tile_that_reads_a_panel(rows: int) -> None:
    tiles = Tiles(rows, rows, 1, triangle=True)
    first, group = first_tiles(tiles, TRIANGLE, 1), raster_group_m(rows)
    checks = [f"first_tile_of_row({x}, {group}) == {first[x]}" for x in range(rows)]
    source = wgmma_source(PRECISIONS["tf32"], TRIANGLE)
    compile_plans("gemm/sm90_scheduler.cuh", [plan_in_cuda(source, *checks)])


@pytest.mark.parametrize(("rows", "blocks"), [(16, 132), (15, 114), (16, 136), (4, 132), (17, 132)])
def test_a_wave_is_of_one_triangle_where_few_tiles_are_left(rows: int, blocks: int) -> None:
    tiles = Tiles(rows, rows, 3, triangle=True)
    order = [number_in_order(tiles, index, blocks) for index in range(tiles.count)]
    assert sorted(order) == list(range(tiles.count))
    own = [
        {x // tiles.each for x in order[at : at + blocks]} for at in range(0, 3 * blocks, blocks)
    ]
    assert (own == [{0}, {1}, {2}]) == (rows in (15, 16))
    checks = [f"has_own_wave({tiles.each}, {blocks}) == {str(has_own_wave(tiles, blocks)).lower()}"]
    for index, number in enumerate(order):
        at = f"triangle_index({index}, 3, {tiles.each}, {blocks})"
        checks.append(f"{at}.triangle * {tiles.each} + {at}.tile == {number}")
    source = wgmma_source(PRECISIONS["tf32"], TRIANGLE)
    compile_plans("gemm/sm90_scheduler.cuh", [plan_in_cuda(source, *checks)])
