"""Which products two warpgroups multiply in turn, and the ring of stages then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import Storage, WgmmaPlan
from argand.gemm.sm90.tiles import wgmma_tiles, with_ping_pong
from argand.runtime.plan import is_legal

from tests.kernels.precisions import TENSOR

HOPPER = arch_for(90)
STORAGES: tuple[Storage, ...] = ("fp32", "half", "planar")
LARGE = WgmmaPlan(2, 128, 32, 3)
SPLIT = WgmmaPlan(2, 128, 16, 3)


@pytest.mark.parametrize("name", TENSOR)
def test_the_ring_of_a_ping_pong_holds_the_k_of_a_tile(name: str) -> None:
    """Else each warpgroup would wait for the other: for its turn, and for stages to be read."""
    row = PRECISIONS[name]
    for storage in STORAGES:
        tiles = (replace(x, prescaled=row.scaled) for x in wgmma_tiles(row, storage))
        for plan in (x for x in tiles if is_legal(check_wgmma_plan, x, row, HOPPER)):
            for k in range(1, 300):
                found = with_ping_pong(plan, row, k, 133, 132)
                assert is_legal(check_wgmma_plan, found, row, HOPPER)
                if not found.ping_pong:
                    assert found == plan
                    continue
                assert plan.m_warpgroups == 2
                held = found.stages if row.terms > 1 else 2 * found.stages // 3
                assert k <= held * found.block_k
                assert (found.block_m, found.block_n) == (plan.block_m, plan.block_n)


def test_ping_pong_is_of_blocks_of_several_tiles() -> None:
    tile, row = replace(SPLIT, k_major=True), PRECISIONS["3xtf32"]
    assert with_ping_pong(tile, row, 48, 133, 132) == replace(tile, ping_pong=True)
    assert with_ping_pong(tile, row, 64, 133, 132) == replace(tile, ping_pong=True, stages=4)
    assert with_ping_pong(tile, row, 65, 133, 132) == tile
    assert with_ping_pong(tile, row, 48, 132, 132) == tile
    turns = [with_ping_pong(LARGE, PRECISIONS["tf32"], k, 133, 132).ping_pong for k in (64, 65)]
    assert turns == [True, False]
    many = [
        with_ping_pong(LARGE, PRECISIONS["tf32"], 48, tiles, 132, overlaps=overlaps).ping_pong
        for tiles in (8 * 132, 8 * 132 + 1) for overlaps in (True, False)
    ]  # fmt: skip
    assert many == [True, True, False, True]
    packs = replace(LARGE, fused_pack=True)
    assert with_ping_pong(packs, PRECISIONS["tf32"], 48, 133, 132) == packs
    scaled = replace(tile, stages=5)
    turns = [with_ping_pong(scaled, PRECISIONS["3xfp16"], k, 133, 132).ping_pong for k in (64, 65)]
    assert turns == [True, False]
    square = replace(SPLIT, triangle=True)
    assert with_ping_pong(square, row, 48, 133, 132) == square


def test_the_stages_of_a_ping_pong_are_those_that_leave_most_of_the_ring() -> None:
    planes, row = WgmmaPlan(2, 128, 48, 2, "planar"), PRECISIONS["3xfp16"]
    found = {k: with_ping_pong(planes, row, k, 999, 132) for k in (48, 49, 64, 65, 96, 97)}
    assert {k: (x.block_k, x.stages) for k, x in found.items() if x.ping_pong} == {
        48: (48, 2), 49: (32, 3), 64: (32, 3), 65: (48, 2), 96: (48, 2),
    }  # fmt: skip
