"""Packing on the way: every line by all k is packed once, and before tiles want it."""

from __future__ import annotations

from collections import Counter

import pytest
from argand.pack_plan import Aside, pack_aside, pitch_of
from argand.wgmma_plan import WgmmaPlan

DEPTH = 256  # k that are counted together: gemm_wgmma_aside.cuh
WARPS = 3


def units(aside: Aside, plan: WgmmaPlan, k: int) -> list[tuple[int, int, int, int]]:
    """(round, strip, chunk, part) of each unit, as pack_aside of gemm_wgmma_aside.cuh has it."""
    chunks, parts = -(-pitch_of(k) // DEPTH), plan.block_n // aside.lines
    each = aside.round * chunks * parts
    found = []
    for unit in range(aside.strips * chunks * parts):
        number, inside = divmod(unit, each)
        first = number * aside.round
        count = min(aside.round, aside.strips - first)
        which, part = divmod(inside, parts)
        found.append((number, first + which % count, which // count, part))
    return found


@pytest.mark.parametrize("blocks", [1, 7, 64, 132])
@pytest.mark.parametrize(
    ("rows", "columns", "k", "batches"),
    [(1, 1, 1, 1), (512, 512, 512, 1), (1024, 1024, 1024, 5), (4096, 256, 256, 9),
     (130, 700, 300, 3), (8192, 8192, 1024, 1), (5000, 64, 64, 11)],
)  # fmt: skip
@pytest.mark.parametrize("plan", [WgmmaPlan(2, 128, 32, 3), WgmmaPlan(1, 32, 32, 6)], ids=str)
def test_units(plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int) -> None:
    aside = pack_aside(plan, rows, columns, k, batches, blocks)
    found = units(aside, plan, k)
    chunks, parts = -(-pitch_of(k) // DEPTH), plan.block_n // aside.lines
    assert plan.block_n % aside.lines == 0
    assert aside.counters == aside.strips * chunks + 1
    assert aside.strips == batches * -(-columns // plan.block_n)
    counted = Counter((strip, chunk) for _, strip, chunk, _ in found)
    assert set(counted.values()) == {parts}
    assert len(counted) == aside.strips * chunks
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("blocks", [1, 7, 64, 132])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("rows", "columns", "batches"), [(1024, 1024, 5), (4096, 256, 9), (8192, 700, 2), (70, 9000, 3)]
)
def test_no_unit_is_held_back_when_a_tile_wants_it(
    rows: int, columns: int, batches: int, parts: int, blocks: int
) -> None:
    """Packing of a round begins at the latest in the turn of the first tile that wants it.

    So whoever is the furthest behind finds its planes on the way, and loading always goes on.
    """
    plan = WgmmaPlan(2, 128, 32, 3)
    aside = pack_aside(plan, rows, columns, 1024, batches, blocks)
    row_tiles, column_tiles = -(-rows // plan.block_m), -(-columns // plan.block_n)
    most = 1 if column_tiles <= 4 else 16  # rows that run together: tile_group
    height = min(row_tiles, most)
    for index in range(batches * parts * row_tiles * column_tiles):
        product, tile = divmod(index, row_tiles * column_tiles)
        group, inside = divmod(tile, most * column_tiles)
        strip = product // parts * column_tiles + inside // min(row_tiles - group * most, most)
        first = strip // aside.round * aside.round
        wanted = (
            first // column_tiles * parts * row_tiles * column_tiles + first % column_tiles * height
        )
        assert wanted <= index
