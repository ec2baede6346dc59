"""Plans of sequences of gates that share a pass over a state, and their tables. Needs no GPU.

A tile holds 2^12 amplitudes: the qubits of all gates and the lowest ones. Each gate acts on four of
them; which of its qubits and columns are bits of a lane's number is chosen so that accesses of
shared memory meet all banks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, permutations
from typing import Any

import numpy as np

from argand.device import Arch
from argand.gates.canonical import GateForm, permuted
from argand.gates.fusion import fused_gate
from argand.gates.gate import Gate
from argand.gates.layout import independent, segments_of
from argand.gates.phases import in_rows, is_phase, phase_tables
from argand.gates.plan import GatePlan, cuda_core_width
from argand.gates.source import ARGUMENTS, argument_values
from argand.gates.truncation import compensated
from argand.precision import Precision
from argand.runtime.arguments import Fields, size_check
from argand.runtime.plan import PlanError, require_precision

TILE_QUBITS = 12
WIDTH = 4
"""Qubits of a gate of a sequence: the rows of one MMA."""
LOW_QUBITS = 3
"""Lowest qubits of each tile: pieces of 64 bytes are copied at nearly the rate of longer ones."""
MOST_GATES = 12
"""Gates of a sequence: their matrices stay in shared memory."""
_ITEM = 8
_RESERVED = 1024
_VECTORS = (0, 1, 2, 4, 3, 6, 7, 5, 1, 2, 4, 3)
"""Bits 4 to 6 of an address that each place changes: powers of a generator of GF(8), of which
neighbouring three are independent."""
SEQUENCE_ARGUMENTS: Fields = (
    *ARGUMENTS, ("const void*", "gates"), ("const void*", "phases"), ("int64", "count"),
    ("int64", "products"),
)  # fmt: skip
"""Members of ``SequenceArguments`` in ``cuda/gates/sequence_kernel.cuh``."""
GATE = np.dtype(
    [("phase_row", np.uint32, (TILE_QUBITS,)), ("row_mask", np.uint32, (4,)),
     ("read_mask", np.uint32, (9,)), ("result_mask", np.uint32, (9,)),
     ("register_mask", np.uint32, (2,)), ("pair_mask", np.uint32), ("inside", np.int32),
     ("is_phase", np.int32), ("index", np.int32)]
)  # fmt: skip
"""``SequenceGate``."""


PHASE_QUBITS, OUTSIDE_QUBITS = 8, 32
PHASES = np.dtype(
    [("inside", np.complex128, (2**PHASE_QUBITS,)),
     ("outside", np.complex128, (PHASE_QUBITS, OUTSIDE_QUBITS))]
)  # fmt: skip
"""``PhaseTable``."""


@dataclass(frozen=True)
class SequencePlan:
    """The kernel of sequences at a precision.

    Attributes:
        precision: of the products.
        threads: of a block.
        stages: tiles that a block holds in shared memory.
        blocks: of a multiprocessor; registers are limited for that many.
    """

    precision: Precision
    threads: int
    stages: int
    blocks: int

    @property
    def tile_bytes(self) -> int:
        """Of a tile in shared memory."""
        return _ITEM << TILE_QUBITS

    def shared_bytes(self, gates: int) -> int:
        """Dynamic shared memory of a block: tiles, matrices, and two addresses of each thread."""
        matrix = 4 * self.precision.terms * self.precision.operand.bytes << 2 * WIDTH >> 1
        return self.stages * self.tile_bytes + gates * (matrix + 4 * self.threads)


PLAN_SIZES = (128, 1, 4)
"""Threads, stages and blocks: while one block waits for its tile, others compute theirs."""


def plan_sequence(precision: Precision, arch: Arch) -> SequencePlan | None:
    """The plan at a precision; None where it has no products of four qubits on tensor cores."""
    try:
        require_precision(precision, arch)
    except PlanError:
        return None
    if precision.exact_operands or cuda_core_width(precision) >= WIDTH:
        return None
    threads, stages, blocks = PLAN_SIZES
    if precision.terms * precision.operand.bytes > WIDTH:  # twice the registers for fragments
        blocks -= 1
    plan = SequencePlan(precision, threads, stages, blocks)
    return plan if plan.shared_bytes(MOST_GATES) + _RESERVED <= arch.shared_bytes else None


def kernel_name(plan: SequencePlan) -> str:
    """Return the kernel's symbol."""
    return f"gate_sequence_{plan.precision.symbol}_{plan.threads}_s{plan.stages}"


def kernel_source(plan: SequencePlan) -> str:
    """Return the CUDA C++ of the plan's kernel."""
    row = plan.precision
    roundings = f"Rounding::{row.roundings[0]}, Rounding::{row.roundings[-1]}"
    return (
        '#include "gates/sequence_kernel.cuh"\n'
        f"{size_check('SequenceArguments', SEQUENCE_ARGUMENTS)}"
        f'static_assert(sizeof(SequenceGate) == {GATE.itemsize}, "gates");\n'
        f'static_assert(sizeof(PhaseTable) == {PHASES.itemsize}, "phases");\n'
        f'extern "C" __global__ void __launch_bounds__({plan.threads}, {plan.blocks})\n'
        f"{kernel_name(plan)}(const __grid_constant__ SequenceArguments args) {{\n"
        f"    GateSequence<Operand::{row.operand.name}, {row.terms}, {roundings}, {plan.threads}, "
        f"{plan.stages}>::run(args);\n"
        "}\n"
    )


def completed_tile(qubits: int, chosen: Iterable[int]) -> tuple[int, ...]:
    """A tile of some qubits and the lowest others. Raises PlanError where they do not fit."""
    taken = {*chosen, *range(LOW_QUBITS)}
    if len(taken) > TILE_QUBITS or qubits < TILE_QUBITS:
        raise PlanError(
            f"a sequence must fit in a tile of {TILE_QUBITS} qubits, got {len(taken)} with the "
            f"lowest {LOW_QUBITS}, of {qubits}"
        )
    free = [qubit for qubit in range(qubits) if qubit not in taken]
    return tuple(sorted([*taken, *free[: TILE_QUBITS - len(taken)]]))


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
    def inside(self) -> bool:
        """Whether a chunk holds two rows of a column."""
        return self.rows[0] == 0

    @property
    def read(self) -> tuple[int, ...]:
        """Places of the bits of a thread's number, then of its steps, when it reads columns."""
        lanes = self.rows[1:3] if self.inside else self.rows[:2]
        return (*lanes, *self.fast, *self.slow)

    @property
    def result(self) -> tuple[int, ...]:
        """Places of the bits of a thread's number, then of its steps, when it writes results."""
        rows = self.rows[1:4] if self.inside else self.rows[:3]
        return (*self.fast[1:], *rows, *self.slow)

    @property
    def registers(self) -> tuple[int, int]:
        """Places of the bits of the number of a chunk of results."""
        return self.fast[0], self.pair if self.inside else self.rows[3]


@lru_cache(maxsize=4096)
def roles_of(targets: tuple[int, ...]) -> GateRoles:
    """Roles of a gate on four places, with as few bank conflicts as any.

    The three lowest bits of a lane's number must have independent vectors in each access.
    """
    best: tuple[int, GateRoles] | None = None
    others = [place for place in range(TILE_QUBITS) if place not in targets]
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
    """The exclusive-or mask of a place in addresses of shared memory, in bytes."""
    low = place < 4
    return (_ITEM << place) ^ (0 if low else _VECTORS[place] << 4)


def launch_values(qubits: int, tile: Sequence[int], plan: SequencePlan) -> dict[str, Any]:
    """Members of ``GateArguments`` for a tile of these qubits."""
    count = plan.threads.bit_length() - 1
    places = range(1, TILE_QUBITS)
    threads, chunks = places[:count], places[count:]
    segments = segments_of(qubits, tile)
    return argument_values(
        {
            "tiles": 1 << (qubits - TILE_QUBITS),
            "segments": len(segments),
            "segment_mask": [mask for mask, _ in segments],
            "segment_shift": [up + _ITEM.bit_length() - 1 for _, up in segments],
            "thread_offset": [_ITEM << tile[place] for place in threads],
            "thread_mask": [mask_of(place) for place in threads],
            "chunk_offset": [_ITEM << tile[place] for place in chunks],
            "chunk_mask": [mask_of(place) for place in chunks],
        }
    )


def placed_gate(form: GateForm, tile: Sequence[int]) -> tuple[tuple[int, ...], Any]:
    """Four places of a gate in the tile, ascending, and its matrix on them.

    Further places, on which it is the identity, are the highest that it does not have.
    """
    places = {tile.index(qubit) for qubit in (*form.targets, *form.controls)}
    if len(places) > WIDTH:
        raise PlanError(f"a gate of a sequence must have at most {WIDTH} qubits, got {len(places)}")
    for place in reversed(range(TILE_QUBITS)):
        if len(places) == WIDTH:
            break
        places.add(place)
    at = {qubit: place for place, qubit in enumerate(tile)}
    gate = Gate(
        form.matrix, tuple(at[q] for q in form.targets), tuple(at[q] for q in form.controls)
    )
    ordered = tuple(sorted(places))
    return ordered, fused_gate([gate, Gate(np.eye(2**WIDTH), ordered)], ordered).matrix


def product_values(
    form: GateForm, tile: Sequence[int], plan: SequencePlan
) -> tuple[dict[str, Any], Any]:
    """Members of ``SequenceGate`` of a gate of four qubits, and its matrix as they order it."""
    targets, matrix = placed_gate(form, tile)
    roles = roles_of(targets)
    values = {
        "row_mask": [mask_of(place) for place in roles.rows],
        "read_mask": [mask_of(place) for place in roles.read],
        "result_mask": [mask_of(place) for place in roles.result],
        "register_mask": [mask_of(place) for place in roles.registers],
        "pair_mask": mask_of(roles.pair),
        "inside": int(roles.inside),
    }
    moved = permuted(matrix, [targets.index(place) for place in roles.rows])
    like = GatePlan("mma", WIDTH, plan.precision, roles.inside, 2, 1)
    return values, np.ascontiguousarray(compensated(np.ascontiguousarray(moved), like))


def count_gates(forms: Sequence[GateForm], tile: Sequence[int]) -> int:
    """How many gates the kernel applies for these: phases in a row are few."""
    return sum(
        len(in_rows(list(run), tile, PHASE_QUBITS)) if phase else sum(1 for _ in run)
        for phase, run in groupby(forms, is_phase)
    )


def tables(
    qubits: int, forms: Sequence[GateForm], tile: Sequence[int], plan: SequencePlan
) -> tuple[Any, Any, Any]:
    """The gates of a sequence as the kernel reads them: `GATE`, matrices complex64, `PHASES`.

    Phases in a row are one gate for every eight qubits. Raises PlanError for too many others.
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
            gates.append({"is_phase": 1, "index": len(phases), "phase_row": rows})
            phases.append(table)
    if len(matrices) > MOST_GATES:
        raise PlanError(
            f"a sequence must have at most {MOST_GATES} gates that are no phases, "
            f"got {len(matrices)}"
        )
    found = np.zeros(len(gates), GATE)
    for number, one in enumerate(gates):
        for name, value in one.items():
            found[name][number] = value
    order = 2**WIDTH
    return (
        found,
        np.array(matrices, np.complex64).reshape(-1, order, order),
        np.array(phases, PHASES),
    )
