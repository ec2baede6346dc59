"""Gates of complex64 whose columns are held in registers: arguments of their kernels.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence

from argand.gates.layout import MAX_CHUNKS, controls_in_tile
from argand.gates.tile_tables import segments_of, xor_sums

_ITEM = 8
"""Bytes of an amplitude. A chunk of 16 bytes has both values of qubit 0."""
_NEAR = (1, 2)
"""Qubits whose rows lie within a line of 64 bytes, but not within a chunk."""


def near_targets(targets: Sequence[int]) -> list[int]:
    """Return the targets whose rows are those of other lanes, so that lanes copy whole lines."""
    return [qubit for qubit in targets if qubit in _NEAR]


def direct_values(
    qubits: int, targets: Sequence[int], controls: Sequence[int], *, sectors: bool = False
) -> dict[str, object]:
    """Return the members of ``GateArguments`` of this kernel, lists not yet padded.

    ``sectors`` is that of `controls_in_tile`: qubit 1 is then the lowest bit of a thread's number.
    """
    inside = controls_in_tile(controls, _ITEM, sectors=sectors)
    controls = [qubit for qubit in controls if qubit not in inside or qubit == 0]
    near = near_targets(targets)
    far = [qubit for qubit in targets if qubit != 0 and qubit not in near]
    taken = [0, *far, *controls]
    return _tile_values(qubits, taken, controls) | {
        "chunk_offset": xor_sums([_ITEM << qubit for qubit in far]),
        "row_mask": [1 << sum(q not in taken for q in range(qubit)) for qubit in near],
        "controls_qubit1": int(1 in inside),
    }


def direct_mma_values(
    qubits: int, targets: Sequence[int], controls: Sequence[int]
) -> dict[str, object]:
    """Return the members of ``GateArguments`` of the kernel on tensor cores, lists not yet padded.

    A tile is 16 columns, those of a warp. Lanes have the lowest targets and columns, so that they
    copy contiguous memory.
    """
    targets_qubit0 = targets[0] == 0
    columns = [q for q in range(1, qubits) if q not in targets and q not in controls]
    lane_columns, pair = columns[:3], columns[3:4] if targets_qubit0 else []
    lane_rows, far = (targets[1:3], targets[3:]) if targets_qubit0 else (targets[:2], targets[2:])
    chunks = xor_sums([_ITEM << qubit for qubit in (*pair, *far)])
    taken = [0, *targets, *controls, *lane_columns, *pair]
    return _tile_values(qubits, taken, controls) | {
        "thread_offset": [_ITEM << qubit for qubit in (*lane_rows, *lane_columns)],
        "chunk_offset": chunks[:MAX_CHUNKS],
        "register_offset": chunks[MAX_CHUNKS : MAX_CHUNKS + 1],
    }


def piece_bytes(qubits: int, targets: Sequence[int], controls: Sequence[int]) -> int:
    """Return the bytes that lie together of a tile of that kernel: of all rows and 16 columns."""
    columns = [q for q in range(qubits) if q not in targets and q not in controls]
    copied = {*targets, *columns[:4]}
    return _ITEM << next(qubit for qubit in range(qubits + 1) if qubit not in copied)


def _tile_values(qubits: int, taken: Sequence[int], controls: Sequence[int]) -> dict[str, object]:
    """Return the members that place a tile, which all qubits but the ``taken`` ones number."""
    segments = segments_of(qubits, taken)
    shift = _ITEM.bit_length() - 1
    return {
        "control_offset": sum(_ITEM << qubit for qubit in controls if qubit != 0),
        "tiles": 1 << sum(mask.bit_count() for mask, _ in segments),
        "segments": len(segments),
        "segment_mask": [mask for mask, _ in segments],
        "segment_shift": [up + shift for _, up in segments],
        "controls_qubit0": int(0 in controls),
    }
