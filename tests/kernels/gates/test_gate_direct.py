"""Gates whose columns are held in registers: which amplitudes threads and lanes have."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.gates.direct import direct_mma_values, direct_values, near_targets, piece_bytes
from argand.gates.operands import operand
from argand.gates.plan import GatePlan
from argand.rounding import split


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


@pytest.mark.parametrize(
    ("targets", "controls", "expected"),
    [
        ((5, 6, 7, 8), (), 128), ((2, 8, 9, 10), (), 256), ((0, 4, 7, 9), (), 512),
        ((1, 2, 7, 9), (), 512), ((2, 8, 9, 10), (3,), 64), ((0, 1, 2, 3), (), 2048),
    ],
)  # fmt: skip
def test_a_target_among_the_lowest_qubits_puts_rows_beside_each_other(
    targets: tuple[int, ...], controls: tuple[int, ...], expected: int
) -> None:
    values: dict[str, Any] = direct_mma_values(11, targets, controls)
    bits = values["thread_offset"]
    lanes = [sum(bit for i, bit in enumerate(bits) if lane >> i & 1) for lane in range(32)]
    highs = values["register_offset"] or [0]
    copied = {
        lane | chunk | high for lane in lanes for chunk in values["chunk_offset"] for high in highs
    }
    run = next(at for at in range(0, 1 << 14, 16) if at not in copied)
    assert piece_bytes(11, targets, controls) == run == expected


def decoded(words: Any, bytes_of_operand: int) -> list[float]:
    """The numbers of a word of fp16, or of tf32."""
    word = np.uint32(words)
    if bytes_of_operand == 4:
        return [float(word.view(np.float32))]
    halves = np.array([word & 0xFFFF, word >> np.uint32(16)], np.uint16)
    return [float(x) for x in halves.view(np.float16)]


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["3xfp16", "fp16", "tf32", "3xtf32"])
@pytest.mark.parametrize("width", [4, 5, 6])
@pytest.mark.parametrize("targets_qubit0", [False, True])
def test_fragments_are_those_of_the_transposed_matrix(
    precision: str, width: int, *, targets_qubit0: bool
) -> None:
    """Columns of a fragment are rows of the matrix, in the order in which lanes hold results."""
    row, order, rng = PRECISIONS[precision], 1 << width, np.random.default_rng(width)
    matrix = rng.standard_normal((order, order, 2)).view(np.complex128)[..., 0]
    plan = GatePlan("direct_mma", width, row, targets_qubit0, 0, 1)
    exponent = 3 if row.scaled else 0
    words = operand(matrix, plan, exponent)
    assert words.nbytes <= plan.operand_bytes
    scaled = np.array([[exponent]]) if row.scaled else None
    terms = split(matrix.astype(np.complex64), row, scaled)
    per = 4 // row.operand.bytes

    def held(octet: int, lane: int, which: int) -> int:
        """The row that a lane has of a column, as one of its two of an octet."""
        own = lane & 3
        return octet << 3 | (own << 1 | which if targets_qubit0 else which << 2 | own)

    places = product(*map(range, words.shape))
    for octet, k_tile, part, lane, term, slot in list(places)[:: 7 if width > 4 else 1]:
        found = decoded(words[octet, k_tile, part, lane, term, slot], row.operand.bytes)
        n = lane >> 2  # of a fragment; lane n / 2 holds that result
        for i in range(per):
            k = held(2 * k_tile + slot, lane, i) if per == 2 else held(k_tile, lane, slot)
            value = terms[term][held(octet, n >> 1, n & 1), k]
            assert found[i] == (value.imag if part else value.real)
