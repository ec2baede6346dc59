"""Tables of a sequence of gates as its kernel reads them. Needs no GPU.

Which of a gate's qubits and columns are bits of a lane's number is chosen so that accesses of
shared memory meet all banks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, permutations
from typing import Any

import numpy as np

from argand.gates.canonical import GateForm, permuted
from argand.gates.fusion import fused_gate
from argand.gates.gate import Gate
from argand.gates.layout import independent
from argand.gates.phases import in_rows, is_phase, phase_tables
from argand.gates.plan import GatePlan
from argand.gates.sequence_plan import (
    GATE,
    ITEM,
    MAX_GATES,
    MAX_PRODUCTS,
    PHASE,
    PHASE_QUBITS,
    PHASES,
    WIDTH,
    SequencePlan,
)  # fmt: skip
from argand.gates.source import argument_values
from argand.gates.tile_tables import segments_of
from argand.gates.truncation import compensated, sequence_bias
from argand.runtime.plan import PlanError

_VECTORS = (0, 1, 2, 4, 3, 6, 7, 5, 1, 2, 4, 3, 6)
"""Bits 4 to 6 of an address that each place changes: powers of a generator of GF(8), so that any
three neighbours are independent."""


@dataclass(frozen=True)
class GateRoles:
    """Places of a gate in a tile by role; ``rows[j]`` is bit j of its matrix's row numbers.

    ``fast`` are the bits of a column of the MMA, ``pair`` the one of its second tile of eight
    columns, ``slow`` those of warps and of a warp's second half.
    """

    rows: tuple[int, ...]
    fast: tuple[int, ...]
    pair: int
    slow: tuple[int, ...]

    @property
    def targets_qubit0(self) -> bool:
        """Whether qubit 0 is a target: a chunk holds two rows of a column."""
        return self.rows[0] == 0

    @property
    def read(self) -> tuple[int, ...]:
        """Places of the bits of a thread's number, then of its steps, when it reads columns."""
        lanes = self.rows[1:3] if self.targets_qubit0 else self.rows[:2]
        return (*lanes, *self.fast, *self.slow)

    @property
    def result(self) -> tuple[int, ...]:
        """Places of the bits of a thread's number, then of its steps, when it writes results."""
        rows = self.rows[1:4] if self.targets_qubit0 else self.rows[:3]
        return (*self.fast[1:], *rows, *self.slow)

    @property
    def registers(self) -> tuple[int, int]:
        """Places of the bits of the number of a chunk of results."""
        return self.fast[0], self.pair if self.targets_qubit0 else self.rows[3]


@lru_cache(maxsize=4096)
def roles_of(targets: tuple[int, ...], size: int = 12) -> GateRoles:
    """Return the roles of a gate on four places, with as few bank conflicts as any.

    The three lowest bits of a lane's number must have independent vectors in each access.
    """
    best: tuple[int, GateRoles] | None = None
    others = [place for place in range(size) if place not in targets]
    for rows in permutations(sorted(targets)):
        if 0 in targets and rows[0] != 0:
            continue
        for fast in permutations([place for place in others if place], 3):
            left = [place for place in others if place not in fast]
            pair = left[0]  # place 0 unless it is a row
            roles = GateRoles(rows, fast, pair, tuple(left[1:]))
            patterns = roles.read[:3], roles.result[:3]
            served = sum(independent([_VECTORS[p] for p in pattern]) for pattern in patterns)
            if best is None or served > best[0]:
                best = served, roles
            if served == len(patterns):
                return roles
    assert best is not None
    return best[1]


def mask_of(place: int) -> int:
    """Return the exclusive-or mask of a place in addresses of shared memory, in bytes."""
    low = place < 4
    return (ITEM << place) ^ (0 if low else _VECTORS[place] << 4)


def launch_values(
    qubits: int, tile: Sequence[int], last: GateForm, plan: SequencePlan
) -> dict[str, Any]:
    """Return members of ``SequenceArguments`` for a tile and where the last gate's results go."""
    count = plan.thread_bits
    places = range(1, len(tile))
    threads, chunks = places[:count], places[count:]
    segments = segments_of(qubits, tile)
    results = result_values(last, tile, plan)
    found = argument_values(
        {
            **results,
            "tiles": 1 << (qubits - len(tile)),
            "segments": len(segments),
            "segment_mask": [mask for mask, _ in segments],
            "segment_shift": [up + ITEM.bit_length() - 1 for _, up in segments],
            "thread_offset": [ITEM << tile[place] for place in threads],
            "thread_mask": [mask_of(place) for place in threads],
            "chunk_offset": [ITEM << tile[place] for place in chunks],
            "chunk_mask": [mask_of(place) for place in chunks],
        }
    )
    return {**found, "step_offset": results["step_offset"]}


def result_values(form: GateForm, tile: Sequence[int], plan: SequencePlan) -> dict[str, Any]:
    """Return members of ``SequenceArguments`` for results of the last gate that go to the state."""
    if is_phase(form):  # through the stage
        return {"result_offset": [], "register_offset": [], "step_offset": [0, 0]}
    roles = roles_of(places_of(form, tile), len(tile))
    offsets = [ITEM << tile[place] for place in roles.read]
    count = plan.thread_bits
    registers = roles.pair if roles.targets_qubit0 else roles.rows[2], roles.rows[3]
    return {
        "result_offset": offsets[:count],
        "register_offset": [ITEM << tile[place] for place in registers],
        "step_offset": [*offsets[count:], 0, 0][:2],
    }


def places_of(form: GateForm, tile: Sequence[int]) -> tuple[int, ...]:
    """Return the four places of a gate in the tile, ascending.

    Further places, on which it is the identity, are the highest that it does not have. Raises
    PlanError for a gate of more qubits.
    """
    places = {tile.index(qubit) for qubit in (*form.targets, *form.controls)}
    if len(places) > WIDTH:
        raise PlanError(f"a gate of a sequence must have at most {WIDTH} qubits, got {len(places)}")
    for place in reversed(range(len(tile))):
        if len(places) == WIDTH:
            break
        places.add(place)
    return tuple(sorted(places))


def placed_gate(form: GateForm, tile: Sequence[int]) -> tuple[tuple[int, ...], Any]:
    """Return the places of a gate in the tile and its matrix on them."""
    ordered = places_of(form, tile)
    at = {qubit: place for place, qubit in enumerate(tile)}
    gate = Gate(
        form.matrix, tuple(at[q] for q in form.targets), tuple(at[q] for q in form.controls)
    )
    return ordered, fused_gate([gate, Gate(np.eye(2**WIDTH), ordered)], ordered).matrix


def product_values(
    form: GateForm, tile: Sequence[int], plan: SequencePlan
) -> tuple[dict[str, Any], Any]:
    """Return the members of `GATE` of a gate of four qubits, and its matrix as they order it."""
    targets, matrix = placed_gate(form, tile)
    roles = roles_of(targets, len(tile))
    count = plan.thread_bits
    values = {
        "masks": {
            "row_mask": [mask_of(place) for place in roles.rows],
            "register_mask": [mask_of(place) for place in roles.registers],
            "step_mask": [mask_of(place) for place in roles.read[count:]],
            "pair_mask": mask_of(roles.pair),
        },
        "placed": {
            "read_mask": [mask_of(place) for place in roles.read[:count]],
            "result_mask": [mask_of(place) for place in roles.result[:count]],
        },
        "kind": int(roles.targets_qubit0),
    }
    moved = permuted(matrix, [targets.index(place) for place in roles.rows])
    like = GatePlan("mma", WIDTH, plan.precision, roles.targets_qubit0, 2, 1)
    return values, np.ascontiguousarray(
        compensated(np.ascontiguousarray(moved), like, sequence_bias(plan.precision, WIDTH))
    )


def count_gates(forms: Sequence[GateForm], tile: Sequence[int]) -> tuple[int, int]:
    """Return how many products the kernel computes for these gates, and how many sets of phases."""
    products = sets = 0
    for phase, run in groupby(forms, is_phase):
        if phase:
            sets += len(in_rows(list(run), tile, PHASE_QUBITS))
        else:
            products += sum(1 for _ in run)
    return products, sets


def tables(
    qubits: int, forms: Sequence[GateForm], tile: Sequence[int], plan: SequencePlan
) -> tuple[Any, Any, Any]:
    """Return a sequence's gates as the kernel reads them: `GATE`, matrices complex64, `PHASES`.

    Phases in a row are one gate for every eight qubits. Raises PlanError for too many of either.
    """
    gates: list[dict[str, Any]] = []
    matrices: list[Any] = []
    phases: list[Any] = []
    outside = [qubit for qubit in range(qubits) if qubit not in tile]
    for phase, run in groupby(forms, is_phase):
        if not phase:
            for form in run:
                values, matrix = product_values(form, tile, plan)
                gates.append({**values, "index": len(matrices)})
                matrices.append(matrix)
            continue
        for own, inside in in_rows(list(run), tile, PHASE_QUBITS):
            table = np.ones((), PHASES)
            inner, mixed = phase_tables(own, inside, outside)
            table["inside"] = np.resize(inner, 2**PHASE_QUBITS)
            table["outside"][: len(inside), : len(outside)] = mixed
            rows = [1 << inside.index(qubit) if qubit in inside else 0 for qubit in tile]
            gates.append({"kind": PHASE, "index": len(phases), "placed": {"phase_row": rows}})
            phases.append(table)
    if len(matrices) > plan.gates:
        raise PlanError(
            f"a sequence must have at most {plan.gates} gates that are not phases, "
            f"got {len(matrices)}"
        )
    if len(gates) > MAX_GATES:
        raise PlanError(f"a sequence must have at most {MAX_GATES} gates, got {len(gates)}")
    found = np.zeros(len(gates), GATE)
    for number, one in enumerate(gates):
        _fill(found[number : number + 1], one)
    order = 2**WIDTH
    return (
        found,
        np.array(matrices, np.complex64).reshape(-1, order, order),
        np.array(phases, PHASES),
    )


def gate_values(gates: Any, plan: SequencePlan) -> dict[str, Any]:
    """Return the members of ``SequenceArguments`` that all threads read at every gate.

    By wgmma the results of a product that is the last gate go straight to the state.
    """
    masks = [word for gate in gates if gate["kind"] != PHASE for word in _words(gate["masks"])]
    order = [int(gate["kind"] + 8 * gate["index"]) for gate in gates]
    if plan.wgmma and gates[-1]["kind"] != PHASE:
        order[-1] += 4
    return {
        "masks": [*masks, *[0] * (MAX_PRODUCTS * _words(gates[0]["masks"]).size - len(masks))],
        "order": [*order, *[0] * (MAX_GATES - len(order))],
    }


def _words(masks: Any) -> Any:
    """Return the 32-bit words of ``SequenceMasks``."""
    return np.frombuffer(masks.tobytes(), np.uint32)


def _fill(row: Any, values: dict[str, Any]) -> None:
    """Write the members of a structure; arrays may be longer than what is given."""
    for name, value in values.items():
        if isinstance(value, dict):
            _fill(row[name], value)
        elif np.ndim(value):
            row[name][:, : len(value)] = value
        else:
            row[name] = value
