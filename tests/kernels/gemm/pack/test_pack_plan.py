"""Plans of packing: panels whose rows are scaled, and tiles of few rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.gemm.pack.plan import THREADS, TILE, PackPlan, panel_rows, panels_resident, pitch_of
from argand.gemm.pack.tiles import laid_out, panel_cluster


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
