"""Plans of sequences of gates that share a pass over a state, and their tables. Needs no GPU.

A tile holds 2^12 amplitudes: the qubits of all gates and the lowest ones. Each gate acts on four of
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from argand.device import Arch
from argand.gates.plan import cuda_core_width
from argand.gates.source import ARGUMENTS
from argand.precision import Precision
from argand.runtime.arguments import Fields, size_check
from argand.runtime.plan import PlanError, require_precision

TILE_QUBITS = 12
WIDTH = 4
"""Qubits of a gate of a sequence: the rows of one MMA."""
LOW_QUBITS = 4
"""Lowest qubits of each tile: pieces of 64 bytes take an H200 twice as long as those of 128."""
MOST_GATES = 12
"""Gates of a sequence: their matrices stay in shared memory."""
ITEM = 8
_RESERVED = 1024
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
        """Bytes of a tile in shared memory."""
        return ITEM << TILE_QUBITS

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
