"""The members of a kernel's arguments that depend on a gate's tile. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argand.gates.layout import GateKind, Tile, controls_in_tile, masks_of, plane_offsets, roles_of

_LINE = 128
"""Bytes of a line, which is part of one tile (``TileWalk`` in ``cuda/gates/tile.cuh``)."""


def segments_of(qubits: int, taken: Sequence[int]) -> list[tuple[int, int]]:
    """Return runs of the qubits that are not taken: mask in a tile's number, and its left shift."""
    runs: list[tuple[int, int]] = []
    number = qubit = 0
    while qubit < qubits:
        start = qubit
        while qubit < qubits and qubit not in taken:
            qubit += 1
        if qubit > start:
            runs.append((((1 << (qubit - start)) - 1) << number, start - number))
            number += qubit - start
        else:
            qubit += 1
    return runs


def tile_steps(values: Mapping[str, Any], step: int) -> dict[str, object]:
    """Return the members of ``GateArguments`` by which a block walks its tiles.

    ``step`` is the difference of their numbers. A tile's offset, in lines, has the bits of its
    number at ``tile_mask``, and ``tile_stride`` has those of the step; where no tile is that far
    from another, the stride carries out of 32 bits at once.
    """

    def offset(tile: int) -> int:
        runs = zip(values["segment_mask"], values["segment_shift"], strict=True)
        found = int(sum((tile & mask) << shift for mask, shift in runs))
        assert found % _LINE == 0, "a line is part of one tile"
        return found // _LINE

    stride = offset(step) if step < values["tiles"] else 2**32 - 1
    return {"tile_mask": offset(values["tiles"] - 1), "tile_stride": stride}


def table_values(
    kind: GateKind, tile: Tile, qubits: int, controls: Sequence[int], operand_bytes: int = 0, *,
    sectors: bool = False,
) -> dict[str, object]:  # fmt: skip
    """Return the members of ``GateArguments`` that depend on the tile, lists not yet padded.

    ``operand_bytes`` are those of a number in the planes of wgmma. ``sectors`` is that of
    `controls_in_tile`.
    """
    roles = roles_of(kind, tile)
    masks = masks_of(tile, roles)
    row_number = {place: 1 << index for index, place in enumerate(tile.rows)}
    inside = controls_in_tile(controls, tile.item, sectors=sectors)
    fixed = sum(tile.item << qubit for qubit in controls if qubit not in inside)
    shift = tile.item.bit_length() - 1
    segments = segments_of(qubits, [*tile.qubits, *controls])
    values: dict[str, object] = {
        "control_offset": fixed,
        "tiles": 1 << sum(mask.bit_count() for mask, _ in segments),
        "segments": len(segments),
        "segment_mask": [mask for mask, _ in segments],
        "segment_shift": [up + shift for _, up in segments],
        "thread_offset": [tile.offset(place) for place in tile.thread_places],
        "thread_mask": [masks[place] for place in tile.thread_places],
        "thread_row": [row_number.get(place, 0) for place in tile.thread_places],
        "result_offset": [tile.offset(place) for place in roles.results],
        "register_offset": [tile.offset(place) for place in roles.registers],
        "result_mask": [masks[place] for place in roles.results],
        "register_mask": [masks[place] for place in roles.registers],
        "chunk_offset": xor_sums([tile.offset(place) for place in tile.chunk_places]),
        "chunk_mask": xor_sums([masks[place] for place in tile.chunk_places]),
        "chunk_row": xor_sums([row_number.get(place, 0) for place in tile.chunk_places]),
        "row_mask": [masks[place] for place in tile.rows],
        "read_mask": [masks[place] for place in roles.read],
        "column_mask": [masks[place] for place in roles.units],
        "pair_mask": 0 if roles.pair is None else masks[roles.pair],
        "controls_qubit0": int(0 in inside),
        "controls_qubit1": int(1 in inside),
    }  # fmt: skip
    if kind == "wgmma":
        offsets = plane_offsets(tile, operand_bytes)
        values["thread_plane"] = [offsets[place] for place in tile.thread_places]
        second = tile.chunk_places[-1] if tile.targets_qubit0 else tile.columns[0]
        values["chunk_plane"] = [0, offsets[second]]
    return values


def xor_sums(bits: Sequence[int]) -> list[int]:
    """Return the exclusive or of the masks of each number's bits."""
    found = [0]
    for bit in bits:
        found += [value ^ bit for value in found]
    return found
