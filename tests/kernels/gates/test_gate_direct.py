"""Gates whose columns are held in registers: which amplitudes threads and lanes have."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from argand.gates.direct import direct_mma_values, direct_values, near_targets


@pytest.mark.parametrize(
    ("targets", "controls"), [((4,), ()), ((1,), ()), ((0, 5), (2,)), ((2, 6), (0, 1))]
)
@pytest.mark.parametrize("sectors", [False, True])
def test_threads_without_tiles_hold_all_rows_of_their_columns(
    targets: tuple[int, ...], controls: tuple[int, ...], *, sectors: bool
) -> None:
    """Chunks whose controls are set are one thread's each; bits of the lane are near targets."""
    qubits, seen = 8, []
    values: dict[str, Any] = direct_values(qubits, targets, controls, sectors=sectors)
    near = near_targets(targets)
    far = [q for q in targets if q and q not in near]
    for thread in range(values["tiles"]):
        at = values["control_offset"]
        for mask, up in zip(values["segment_mask"], values["segment_shift"], strict=True):
            at |= (thread & mask) << up
        for number, chunk in enumerate(values["chunk_offset"]):
            first = (at | chunk) // 8
            assert [first >> q & 1 for q in far] == [number >> bit & 1 for bit in range(len(far))]
            lane = [bool(thread & mask) for mask in values["row_mask"]]
            assert [bool(first >> q & 1) for q in near] == lane
            assert not values["controls_qubit1"] or thread & 1 == first >> 1 & 1
            seen.append(first)
    assert values["controls_qubit1"] == (sectors and 1 in controls)
    excluded = [c for c in controls if c > int(sectors)]
    expected = [x for x in range(0, 1 << qubits, 2) if all(x >> c & 1 for c in excluded)]
    assert sorted(seen) == expected
    assert max(values["row_mask"], default=0) < 32
    assert values["controls_qubit0"] == (0 in controls)


@pytest.mark.parametrize(
    ("targets", "controls"),
    [
        ((0, 3, 6, 8), (2,)),
        ((1, 2, 3, 4, 7), (0, 9)),
        ((0, 1, 2, 3, 4, 5), ()),
        ((3, 4, 5, 6, 7, 8), ()),
    ],
)
def test_warps_without_tiles_hold_all_rows_of_their_columns(
    targets: tuple[int, ...], controls: tuple[int, ...]
) -> None:
    """Amplitudes are one lane's each, at the row that its place in a fragment has."""
    qubits, seen = 11, []
    values: dict[str, Any] = direct_mma_values(qubits, targets, controls)
    offsets = values["chunk_offset"]
    offsets = [
        *offsets,
        *(high + offset for high in values["register_offset"] for offset in offsets),
    ]
    for tile, lane in product(range(values["tiles"]), range(32)):
        at = values["control_offset"]
        for mask, up in zip(values["segment_mask"], values["segment_shift"], strict=True):
            at |= (tile & mask) << up
        at |= sum(offset for bit, offset in enumerate(values["thread_offset"]) if lane >> bit & 1)
        columns = set()
        for number, chunk in enumerate(offsets):
            for half in range(2):
                amplitude = (at | chunk) // 8 + half
                row = sum((amplitude >> q & 1) << bit for bit, q in enumerate(targets))
                low, column = (half, number & 1) if targets[0] == 0 else (number & 1, half)
                lane_rows = (lane & 3) << 1 | low if targets[0] == 0 else low << 2 | lane & 3
                assert row == number >> 1 << 3 | lane_rows
                columns.add((column, amplitude & ~sum(1 << q for q in targets)))
                seen.append(amplitude)
        assert len(columns) == 2
    expected = [x for x in range(1 << qubits) if all(x >> c & 1 for c in controls if c)]
    assert sorted(seen) == expected
