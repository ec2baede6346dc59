"""Fused packing: every row is packed once, and before a tile needs it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.gemm.pack.plan import THREADS, TILE, PackPlan, panel_rows, panels_resident, pitch_of
from argand.gemm.pack.tiles import laid_out, panel_cluster
from argand.gemm.sm90.fused_pack import FusedPack, plan_fused_pack
from argand.gemm.sm90.plan import WgmmaPlan
from argand.gemm.sm90.scheduler import TileDivision, Tiles, divide

K_BLOCK = 256  # kPackBlockK of gemm/sm90_fused_pack.cuh
WARPS = 3


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


class Loading:
    """One block's loads: (wave, panel, k-block), tile after tile, and how far it is."""

    def __init__(
        self, block: int, tiles: Tiles, division: TileDivision, k_tiles: int, of_k_block: int
    ):
        self.k_blocks = -(-k_tiles // of_k_block)
        self.entries: list[tuple[int, int, int]] = []
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
            product, _, column = tiles.coordinates(index)
            panel = product * tiles.columns + column
            for k_block in range(first_k_tile // of_k_block, (last_k_tile - 1) // of_k_block + 1):
                self.entries.append((wave, panel, k_block))
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
    """Every thread that is ready goes on until none is: then all is loaded.

    The order does not matter, because a condition that holds once holds ever after.
    """
    plan = WgmmaPlan(2, 128, 32, 3)
    tiles = Tiles(-(-rows // plan.block_m), -(-columns // plan.block_n), batches)
    k_tiles, of_k_block = -(-k // plan.block_k), K_BLOCK // plan.block_k
    division = divide(tiles.count, blocks, k_tiles, plan.block_k, min_k_tiles=2)
    fused = plan_fused_pack(plan, rows, columns, k, batches, division.blocks)
    k_blocks, unit_rows = -(-pitch_of(k) // K_BLOCK), plan.block_n // fused.rows
    height = min(tiles.rows, 1 if tiles.columns <= 4 else 16)  # raster_group_m
    loading = [
        Loading(block, tiles, division, k_tiles, of_k_block) for block in range(division.blocks)
    ]
    every, workers = units(fused, plan, k), division.blocks * WARPS
    warps = list(range(workers))  # the unit that each is at
    packed: Counter[tuple[int, int]] = Counter()
    moved = True
    while moved:
        moved = False
        for block, own in enumerate(loading):
            while own.at < len(own.entries) and packed[own.entries[own.at][1:]] == unit_rows:
                own.at += 1
                moved = True
            for warp in range(WARPS * block, WARPS * (block + 1)):
                while warps[warp] < len(every):
                    number, panel, k_block, _ = every[warps[warp]]
                    first = number * fused.panels_per_wave
                    tile = (
                        first // tiles.columns * tiles.rows * tiles.columns
                        + first % tiles.columns * height
                    )
                    expected = tile // division.blocks * k_blocks + k_block
                    if own.loaded < expected - fused.maximum_lead:
                        break
                    packed[panel, k_block] += 1
                    warps[warp] += workers
                    moved = True
    assert all(own.at == len(own.entries) for own in loading)
    assert min(warps) >= len(every)


@pytest.mark.pairwise
@pytest.mark.parametrize("blocks", [1, 7, 64, 132])
@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize(
    ("rows", "columns", "batches"), [(1024, 1024, 5), (4096, 256, 9), (8192, 700, 2), (70, 9000, 3)]
)
def test_no_unit_is_held_back_when_a_tile_needs_it(
    rows: int, columns: int, batches: int, slices: int, blocks: int
) -> None:
    """Packing of a wave's panels begins at the latest with the first tile that needs them.

    So the block that is furthest behind finds its planes under way, and loading always goes on.
    """
    plan = WgmmaPlan(2, 128, 32, 3)
    fused = plan_fused_pack(plan, rows, columns, 1024, batches, blocks)
    row_tiles, column_tiles = -(-rows // plan.block_m), -(-columns // plan.block_n)
    most = 1 if column_tiles <= 4 else 16  # rows that run together: raster_group_m
    height = min(row_tiles, most)
    for index in range(batches * slices * row_tiles * column_tiles):
        product, tile = divmod(index, row_tiles * column_tiles)
        group, inside = divmod(tile, most * column_tiles)
        panel = product // slices * column_tiles + inside // min(row_tiles - group * most, most)
        first = panel // fused.panels_per_wave * fused.panels_per_wave
        expected = (
            first // column_tiles * slices * row_tiles * column_tiles
            + first % column_tiles * height
        )
        assert expected <= index


def test_panels_whose_rows_are_scaled_have_few() -> None:
    """On an H200 four panels of 16 rows are resident up to k = 42240, of 64 rows up to 8448."""
    ks = (64, 80, 256, 272, 512, 528, 1024, 1040, 1296, 2048, 2064)
    for precision in ("3xfp16", "fp16"):
        row = PRECISIONS[precision]
        assert [panel_rows(row, False, k) for k in ks] == [64, *[16] * 10]
        assert panel_rows(row, True, 4096) == 64  # 16-bit sources have no scales
        # A block holds 16 rows of a k of 256, and a cluster up to eight blocks, but not five.
        assert [panel_cluster(PackPlan(rows=16), row, k) for k in ks] == [
            1, 1, 1, 2, 2, 4, 4, 1, 8, 8, 1,
        ]  # fmt: skip
        assert panel_cluster(PackPlan(half_source=True), row, 512) == 1
    assert panel_rows(PRECISIONS["3xtf32"], False, 4096) == 64
    assert panel_cluster(PackPlan(rows=16), PRECISIONS["3xtf32"], 512) == 1
    assert [PackPlan(rows=16, cluster=x).panel_blocks(600) for x in (1, 4)] == [3, 4]
    few, many = PackPlan(rows=16), PackPlan(rows=64)
    assert panels_resident(few, 42240, 132)
    assert not panels_resident(few, 42240 + 16, 132)
    assert panels_resident(many, 8448, 132)
    assert not panels_resident(many, 8448 + 16, 132)


@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
def test_panels_are_halved_where_that_makes_them_a_cluster(precision: str) -> None:
    """Five blocks would leave three of a cluster idle, and more than eight are none."""
    row = PRECISIONS[precision]
    halved = {1040: 4, 1280: 4, 2576: 8, 4096: 8}
    for k in (64, 256, 512, 1024, *halved, 1296, 2048, 2064, 2560, 4112):
        plan = PackPlan(vector=2, rows=panel_rows(row, False, k))
        whole = replace(plan, cluster=panel_cluster(plan, row, k))
        panels = 660 // plan.panel_blocks(k)  # whose blocks are resident at once, and more
        one_wave, more = [(plan.rows, panels)], [(plan.rows, panels + 1)]
        [found] = laid_out([plan], row, [k], one_wave, 132)
        assert found.rows == (8 if k in halved else plan.rows)
        assert found.cluster == halved.get(k, whole.cluster)
        assert laid_out([plan], row, [k], more, 132) == [whole]
        # Threads hold no line of 512 k one by one, and one kernel packs both.
        single, across = replace(plan, vector=1), replace(plan, vector=1, k_major=False)
        assert laid_out([single], row, [k], one_wave, 132) == [replace(whole, vector=1)]
        assert laid_out([across], row, [k], one_wave, 132)[0].rows == found.rows
        half = [(plan.rows, panels // 2)] * 2
        both = laid_out([single, across], row, [k, k], half, 132)
        assert [x.rows for x in both] == [plan.rows] * 2
        assert len({x.cluster for x in both}) == 1
    plan = PackPlan(vector=2)
    assert laid_out([plan], PRECISIONS["3xtf32"], [4096], [(64, 1)], 132) == [plan]


@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
@pytest.mark.parametrize("vector", [1, 2])
@pytest.mark.parametrize("k_major", [False, True])
def test_small_tiles_have_a_multiprocessor_each(precision: str, vector: int, k_major: bool) -> None:
    row, small = PRECISIONS[precision], 0
    for k in (16, 48, 64, 80, 256, 272, 512, 640, 1024, 1296, 2048, 3000, 4096, 9000):
        for rows, batches in ((1, 1), (33, 1), (100, 3), (1000, 1), (5, 40), (5000, 1)):
            pitch = pitch_of(k)
            plan = PackPlan(False, k_major, vector, panel_rows(row, False, pitch))
            [found] = laid_out([plan], row, [pitch], [(rows, batches)], 132)
            assert found.cluster <= 8
            assert found.elements % found.rows == 0
            line = found.tile_k if k_major else found.rows
            assert line % vector == 0
            assert line // vector <= THREADS
            assert THREADS % (line // vector) == 0
            if k_major:  # a warp finds the absmax of one row
                assert line // vector >= 32
            if found.elements == TILE:
                continue
            small += 1
            assert found.panels(rows, batches) * found.panel_blocks(pitch) <= 132
            assert pitch <= found.tile_k * found.cluster
    assert small > 30
    plan = PackPlan(False, k_major, vector, 16)
    assert [
        (x.elements, x.rows, x.cluster)
        for k, rows in ((64, 2000), (256, 500), (512, 200), (1000, 100), (2000, 60), (512, 500))
        for x in laid_out([plan], row, [k], [(rows, 1)], 132)
    ] == [
        (1024, 16, 1), (1024, 16, 4), (1024, 16, 8), (1024, 8, 8), (1024, 4, 8), (2048, 16, 4),
    ]  # fmt: skip
    if not k_major:  # a block's threads hold no line of 1024 k
        [found] = laid_out([plan], row, [2464], [(34, 1)], 132)
        assert (found.elements, found.rows, found.cluster) == (TILE, 4, 4)
    # Both sources of a launch, in clusters of one size.
    both = laid_out(
        [plan, replace(plan, k_major=not k_major)], row, [512, 500], [(200, 1), (9, 1)], 132
    )
    assert {(x.elements, x.rows, x.cluster) for x in both} == {(1024, 16, 8)}
