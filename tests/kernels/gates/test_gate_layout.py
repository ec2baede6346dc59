"""A tile's layout as the kernels of gates see it: every amplitude once, rows in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.gates.heuristics import mma_plans
from argand.gates.layout import (
    GateKind,
    Tile,
    independent,
    make_tile,
    masks_of,
    plane_line_bytes,
    plane_offsets,
    roles_of,
    tile_columns,
)
from argand.gates.operands import operand
from argand.gates.tile_tables import segments_of, table_values, tile_steps

from tests.covers import covered, examples

QUBITS = 20
PLACEMENTS = {
    "low": lambda k: list(range(k)),
    "mid": lambda k: list(range(7, 7 + k)),
    "high": lambda k: list(range(QUBITS - k, QUBITS)),
    "spread": lambda k: [round(i * (QUBITS - 1) / max(1, k - 1)) for i in range(k)],
}


def cases(kind: GateKind) -> Iterator[tuple[Tile, int]]:
    """Tiles of every width and placement of a kernel, random ones too, and their widths."""
    rng = np.random.default_rng(3)
    widths = {"fma": range(1, 8), "permute": range(1, 8), "mma": range(4, 8), "wgmma": (6, 7)}[kind]
    items = (8, 16) if kind in ("fma", "permute") else (8,)
    every = list(product(widths, (*PLACEMENTS, *range(examples(10))), items))
    for k, where, item in covered(every, lambda row: dict(enumerate(row))):
        if isinstance(where, str):
            targets = PLACEMENTS[where](k)
        else:
            targets = sorted(map(int, rng.permutation(QUBITS)[:k]))
        columns = 5 if kind == "wgmma" else (14 if item == 8 else 13) - 3 - k
        threads = {"fma": 128, "permute": 128, "mma": 256, "wgmma": 2 << k}[kind]
        free = tile_columns(QUBITS, targets, [], item)[:columns]
        yield make_tile(kind, free, targets, item, threads), k


def combine(masks: Iterable[int], number: Any) -> Any:
    """The masks of a number's bits, combined; of an array of numbers, an array."""
    found = 0 * number
    for bit, mask in enumerate(masks):
        found ^= (number >> bit & 1) * mask
    return found


def spread(number: Any, places: list[int]) -> Any:
    return sum((number >> i & 1) << place for i, place in enumerate(places))


class Seen:
    """Addresses in a tile, decoded to row and column numbers."""

    def __init__(self, kind: GateKind, tile: Tile) -> None:
        self.tile = tile
        self.masks = masks_of(tile, roles_of(kind, tile))
        self.values = table_values(kind, tile, QUBITS, [])
        numbers = np.arange(2 ** len(tile.qubits))
        rows, columns = (
            sum((numbers >> p & 1) << i for i, p in enumerate(places)) + 0 * numbers
            for places in (tile.rows, tile.columns)
        )
        addresses = combine(self.masks, numbers).tolist()
        places = zip(rows.tolist(), columns.tolist(), strict=True)
        self.at: dict[int, tuple[int, int]] = dict(zip(addresses, places, strict=True))


@pytest.mark.parametrize("kind", ["fma", "permute", "mma", "wgmma"])
def test_each_amplitude_has_one_place_and_one_thread(kind: GateKind) -> None:
    for tile, _ in cases(kind):
        seen = Seen(kind, tile)
        size = tile.item << len(tile.qubits)
        assert sorted(seen.at) == list(range(0, size, tile.item))
        threads = np.arange(2 ** len(tile.thread_places))
        offset, mask, row = (
            combine(seen.values[f"thread_{name}"], threads) for name in ("offset", "mask", "row")
        )
        owned: dict[int, int] = {}
        for i in range(2 ** len(tile.chunk_places)):
            at = (mask ^ seen.values["chunk_mask"][i]).tolist()
            rows = (row ^ seen.values["chunk_row"][i]).tolist()
            assert [seen.at[address][0] for address in at] == rows
            offsets = (offset ^ seen.values["chunk_offset"][i]).tolist()
            owned |= zip(at, offsets, strict=True)
        assert sorted(owned) == list(range(0, size, 16))
        qubits = [tile.qubits[p] for p in tile.rows], [tile.qubits[p] for p in tile.columns]
        for inner in range(0, 16, tile.item):
            places = np.array([seen.at[at + inner] for at in owned])
            amplitudes = spread(places[:, 0], qubits[0]) | spread(places[:, 1], qubits[1])
            found = np.array([*owned.values()]) + inner
            np.testing.assert_array_equal(found, amplitudes * tile.item)


@pytest.mark.parametrize("kind", ["fma", "permute", "mma", "wgmma"])
def test_eight_lanes_meet_all_banks(kind: GateKind) -> None:
    for tile, width in cases(kind):
        roles, first = roles_of(kind, tile), 1 if tile.item < 16 else 0
        masks = masks_of(tile, roles)
        for pattern in roles.patterns:
            vectors = [masks[place] >> 4 & 7 for place in pattern]
            assert all(place >= first for place in pattern)
            assert independent(vectors), (tile, width, pattern)


def matrix_row(targets_qubit0: bool, lane: int, half: int, row_tile: int) -> int:
    """As ``matrix_row`` of gates/operands.cuh."""
    places = [1, 2, 3] if targets_qubit0 else [0, 1, 2]
    return spread(lane >> 2, places) | half << (0 if targets_qubit0 else 3) | row_tile << 4


def results(seen: Seen, tiles: int, threads: int) -> dict[tuple[int, int, int], tuple[int, int]]:
    """(warp, row of 16, column of 8 x tiles) -> (row, column): ``for_each_result_chunk``."""
    values, tile, targets_qubit0 = seen.values, seen.tile, seen.tile.targets_qubit0
    row_tiles = 2 ** len(tile.rows) // 16
    found = {}
    for thread in range(threads):
        lane, warp = thread % 32, thread // 32
        target, own = (combine(values[f"result_{name}"], thread) for name in ("offset", "mask"))
        for pair, half, edge in product(range(tiles // 2), range(2), range(2)):
            offset = target + combine(values["register_offset"], edge | half << 1 | pair << 2)
            mask = own ^ combine(values["register_mask"], edge | half << 1 | pair << 2)
            low = (
                4 * (2 * pair + (half if targets_qubit0 else 0))
                + edge
                + (0 if targets_qubit0 else 2 * half)
            )
            for register, inner in ((low, 0), (low + (2 if targets_qubit0 else 4), 8)):
                column = 8 * (register // 4) + 2 * (lane & 3) + register % 2
                lower = register % 4 // 2
                amplitude = (offset + inner) // 8
                row = sum((amplitude >> tile.qubits[p] & 1) << i for i, p in enumerate(tile.rows))
                at = sum((amplitude >> tile.qubits[p] & 1) << i for i, p in enumerate(tile.columns))
                assert row == matrix_row(targets_qubit0, lane, lower, warp % row_tiles)
                assert seen.at[mask + inner] == (row, at)
                assert (warp, lane // 4 + 8 * lower, column) not in found
                found[warp, lane // 4 + 8 * lower, column] = (row, at)
    assert len(set(found.values())) == 2 ** len(tile.qubits)
    return found


@pytest.mark.parametrize("depth", [16, 8])
def test_products_of_a_warp_meet_their_rows_and_columns(depth: int) -> None:
    held, per = depth // 4, depth // 8
    for tile, k in cases("mma"):
        seen, targets_qubit0 = Seen("mma", tile), tile.targets_qubit0
        values, row_tiles = seen.values, 2**k // 16
        written = results(seen, 2, 256)
        for group, lane in product(range(8 // row_tiles), range(32)):
            at = combine(values["read_mask"], lane | group << 5)
            for step in range(2**k // depth):
                mask = combine(values["row_mask"][4 if per == 2 else 3 :], step)
                low = values["row_mask"][0 if targets_qubit0 else 2]
                high = values["row_mask"][3] if held == 4 else 0
                for number, column in product(range(held), range(2)):
                    address = at ^ mask ^ (high if number & 2 else 0)
                    if targets_qubit0:
                        address ^= values["pair_mask"] if column else 0
                        address += 8 * (number & 1)
                    else:
                        address ^= low if number & 1 else 0
                        address += 8 * column
                    row, found = seen.at[address]
                    places = ([1, 2], [0, 3]) if targets_qubit0 else ([0, 1], [2, 3])
                    expected = spread(lane & 3, places[0]) | spread(number, places[1])
                    assert row == expected | step << (4 if per == 2 else 3)
                    for row_tile in range(row_tiles):
                        warp = row_tile + group * row_tiles
                        assert written[warp, 0, 8 * column + (lane >> 2)][1] == found


def column_order(k: int, targets_qubit0: bool) -> list[int]:
    """The bits of a column in the order of the operand: those of eight in a row, then others."""
    first = [0, k - 1, k - 2] if targets_qubit0 else [k - 1, k - 2, k - 3]
    return [*first, *(bit for bit in range(k) if bit not in first)]


def test_products_of_a_warpgroup_meet_their_rows_and_columns() -> None:
    """Core matrices of 16 bytes a column: 8 rows of two bytes, or every other one of four."""
    for tile, k in cases("wgmma"):
        seen, targets_qubit0 = Seen("wgmma", tile), tile.targets_qubit0
        written, order = results(seen, 4, 2 << k), column_order(k, targets_qubit0)
        for cores, columns in ((1, range(32)), (2, range(0, 32, 5))):
            values = table_values("wgmma", tile, QUBITS, [], 2 * cores)
            line_bytes = plane_line_bytes(k, targets_qubit0, 2 * cores)
            core_bytes = (line_bytes - 16) // cores
            lines = {}
            for thread in range(2 << k):
                own = combine(values["thread_mask"], thread)
                plane = sum(o for b, o in enumerate(values["thread_plane"]) if thread >> b & 1)
                for which, row in product(range(2), range(8)):
                    chunk = 4 * which + row // 2 if targets_qubit0 else row
                    second = row % 2 if targets_qubit0 else which
                    at = (own ^ values["chunk_mask"][chunk]) + 8 * second
                    line = plane + values["chunk_plane"][which] + row % cores * core_bytes
                    lines[line, row // cores] = seen.at[at]
            assert len(set(lines.values())) == 2 ** len(tile.qubits)
            for number, column in product(range(2**k), columns):
                line, row = divmod(number, 8)
                at = line * line_bytes + row % cores * core_bytes + 16 * column
                found = lines[at, row // cores]
                assert found[0] == spread(number, order)
                assert found[1] == written[0, 0, column][1]
            assert max(plane_offsets(tile, 2 * cores).values()) < 2**k // 8 * line_bytes


@pytest.mark.parametrize("targets_qubit0", [False, True])
def test_the_operand_of_a_warpgroup_has_the_columns_of_a_core_matrix_together(
    targets_qubit0: bool,
) -> None:
    """In every other row of an access neighbouring groups change places."""
    (arch,) = (arch for arch in ARCHITECTURES if arch.target == "sm_90a")
    plan, k = mma_plans(PRECISIONS["tf32"], arch, width=7, targets_qubit0=targets_qubit0)[0], 7
    order = column_order(k, targets_qubit0)
    columns = np.arange(2**k)
    found = operand(columns + 1j * columns[:, None], plan, 0)
    for row in range(2**k):
        exchanged = 8 if row & (2 if targets_qubit0 else 1) else 0
        expected = [spread(number ^ exchanged, order) + 1j * row for number in range(2**k)]
        np.testing.assert_array_equal(found[row], expected)


def test_every_tile_of_a_state_is_reached_once() -> None:
    targets, controls = [0, 3, 9, 11], [5, 19]
    free = tile_columns(QUBITS, targets, controls, 8)[:7]
    tile = make_tile("mma", free, targets, 8, 256)
    values = table_values("mma", tile, QUBITS, controls)
    assert values["tiles"] == 2 ** (QUBITS - 2 - 11)
    offsets = set()
    for number in range(values["tiles"]):
        offset = values["control_offset"]
        runs = zip(values["segment_mask"], values["segment_shift"], strict=True)
        for mask, shift in runs:
            offset |= (number & mask) << shift
        offsets.add(offset)
        for qubit in (*tile.qubits, *controls):
            assert offset >> (3 + qubit) & 1 == (qubit in controls)
    assert len(offsets) == values["tiles"]


@pytest.mark.parametrize("kind", ["fma", "wgmma"])
def test_blocks_walk_their_tiles_by_sums(kind: GateKind) -> None:
    """As ``TileWalk`` of the kernels does, with whatever tiles, controls and number of blocks."""
    rng, qubits = np.random.default_rng(5), 15
    for _ in range(examples(10)):
        order = [int(qubit) for qubit in rng.permutation(qubits)]
        width = int(rng.integers(6, 8)) if kind == "wgmma" else int(rng.integers(1, 8))
        targets = tuple(sorted(order[:width]))
        controls = tuple(order[width : width + int(rng.integers(0, 3))])
        item = 8 if kind == "wgmma" else int(rng.choice([8, 16]))
        free = tile_columns(qubits, targets, controls, item)
        columns = 5 if kind == "wgmma" else (11 if item == 8 else 10) - width
        threads = 128 if kind == "fma" else 2 << width
        tile = make_tile(kind, free[:columns], targets, item, threads)
        values: dict[str, Any] = table_values(kind, tile, qubits, controls)
        runs = list(zip(values["segment_mask"], values["segment_shift"], strict=True))
        step = int(rng.integers(1, values["tiles"] + 2))
        steps: dict[str, Any] = tile_steps(values, step)
        mask, stride = steps["tile_mask"], steps["tile_stride"]
        for first in range(min(step, values["tiles"])):
            line, reached, more = offset_of(runs, first) // 128, [], True
            while more:
                reached.append(128 * line)
                total = (line | ~mask & 0xFFFFFFFF) + stride & 0xFFFFFFFF
                line, more = total & mask, total >= stride
            assert reached == [offset_of(runs, n) for n in range(first, values["tiles"], step)]


def offset_of(runs: Iterable[tuple[int, int]], tile: int) -> int:
    return sum((tile & mask) << shift for mask, shift in runs)


def test_qubit_0_as_a_control_stays_in_the_tile_of_complex64_alone() -> None:
    assert tile_columns(5, [2], [0, 4], 8) == [0, 1, 3]
    assert tile_columns(5, [2], [0, 4], 16) == [1, 3]
    assert tile_columns(13, [2], [12], 8) == [0, 1, 3, 4, 5, 6, 10, 11, 7, 8, 9]
    tile = make_tile("fma", [0, 1, 3], [2], 8, 4)
    values = table_values("fma", tile, 5, [0, 4])
    assert (values["controls_qubit0"], values["control_offset"]) == (1, 8 << 4)


def test_segments() -> None:
    assert segments_of(6, [1, 4]) == [(0b1, 0), (0b110, 1), (0b1000, 2)]
    assert segments_of(3, [0, 1, 2]) == []
