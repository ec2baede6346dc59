"""Plans of sequences of gates that share a pass over a state, and their tables. Needs no GPU.

A tile holds 2^12 or 2^13 amplitudes: the qubits of all gates and the lowest ones. Each gate acts on
four of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from argand.device import Arch
from argand.gates.plan import cuda_core_width
from argand.gates.source import ARGUMENTS
from argand.multiprocessor import REGISTERS
from argand.precision import Precision
from argand.runtime.compile.cpp import operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_function
from argand.runtime.launch.arguments import Fields, size_check
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal, require_precision

TILES = 12, 13
"""Qubits of a tile."""
MAX_TILE = max(TILES)
WIDTH = 4
"""Qubits of a gate of a sequence: the rows of one MMA."""
LOW_QUBITS = 4
"""Lowest qubits of each tile: pieces of 64 bytes take an H200 twice as long as those of 128."""
MIN_PRODUCTS, MAX_PRODUCTS = 5, 8
"""Gates of a sequence that are not phases: their matrices stay in shared memory."""
ITEM = 8
"""Bytes of an amplitude, complex64."""
_ALIGNMENT = 1024
_THREAD_BITS = 9
"""Most bits of the number of a thread in its group."""
SIZES = {12: ((5, 5), (4, 5), (3, 5), (2, 4), (2, 3), (1, 2), (1, 1)), 13: ((3, 3), (2, 3))}
"""Groups and stages by the qubits of a tile: the first that fit."""
MAX_STEPS = 4
"""Steps of 16 columns that a warp takes for a gate."""
FEW_TILES = {12: ((1, 1), (2, 2)), 13: ((2, 1),)}
"""Steps and groups by the qubits of a tile, where multiprocessors have no more tiles each."""
MASKS = np.dtype(
    [("row_mask", np.uint32, (4,)), ("register_mask", np.uint32, (2,)),
     ("step_mask", np.uint32, (2,)), ("pair_mask", np.uint32)]
)  # fmt: skip
"""``SequenceMasks``."""
PLACED_GATE = np.dtype(
    [("phase_row", np.uint32, (MAX_TILE,)), ("read_mask", np.uint32, (_THREAD_BITS,)),
     ("result_mask", np.uint32, (_THREAD_BITS,))]
)  # fmt: skip
"""``SequenceGate``."""
GATE = np.dtype(
    [("placed", PLACED_GATE), ("masks", MASKS), ("kind", np.uint32), ("index", np.uint32)]
)
"""A gate: where it lies in a tile, its kind, and its number among phases or among the others."""
MAX_GATES = 128
"""Gates of a sequence, its phases included; a table of phases has eight qubits."""
SEQUENCE_ARGUMENTS: Fields = (
    *ARGUMENTS, ("const void*", "gates"), ("const void*", "phases"), ("int64", "count"),
    ("int64", "products"), ("int64", "step_offset[2]"),
    ("uint32", f"masks[{MAX_PRODUCTS * MASKS.itemsize // 4}]"), ("uint32", f"order[{MAX_GATES}]"),
)  # fmt: skip
"""Members of ``SequenceArguments`` in ``cuda/gates/sequence_tile.cuh``."""


PHASE = 2
"""Kind of a phase; a product has 0, or 1 where it targets qubit 0."""
PHASE_QUBITS, OUTSIDE_QUBITS = 8, 32
PHASES = np.dtype(
    [("inside", np.complex128, (2**PHASE_QUBITS,)),
     ("outside", np.complex128, (PHASE_QUBITS, OUTSIDE_QUBITS))]
)  # fmt: skip
"""``PhaseTable``."""


@dataclass(frozen=True)
class SequencePlan:
    """The kernel of sequences at a precision: one block per multiprocessor.

    Attributes:
        precision: the precision of the products.
        groups: groups of 128 threads, each of which applies all gates to a tile of its own.
        stages: tiles that a block holds in shared memory; those that no group computes are copied.
        wgmma: whether products are by wgmma; else by mma.sync.
        gates: the most that are not phases: their matrices stay in shared memory.
        steps: groups of 16 columns that a warp takes for a gate. With fewer a group has more
            threads.
    """

    precision: Precision
    tile_qubits: int
    groups: int
    stages: int
    wgmma: bool = False
    gates: int = 0
    steps: int = MAX_STEPS

    @property
    def group_threads(self) -> int:
        """Threads of a group: each applies a gate to eight amplitudes a step."""
        return (1 << self.tile_qubits - 3) // self.steps

    @property
    def thread_bits(self) -> int:
        """Bits of the number of a thread in its group."""
        return self.group_threads.bit_length() - 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.group_threads * self.groups

    @property
    def registers(self) -> int:
        """Registers that a thread needs; by mma.sync it holds a gate's matrix."""
        if self.wgmma:
            return 80
        return 128 if self.precision.terms * self.precision.operand.bytes > WIDTH else 96

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile in shared memory."""
        return ITEM << self.tile_qubits

    def shared_bytes(self, gates: int) -> int:
        """Return dynamic shared memory of a block: tiles, and matrices and addresses of threads."""
        matrix = 4 * self.precision.terms * self.precision.operand.bytes << 2 * WIDTH >> 1
        matrix *= 2 if self.wgmma else 1
        addresses = (2 if self.wgmma else 4) * self.group_threads
        return self.stages * self.tile_bytes + gates * (matrix + addresses)

    @property
    def static_bytes(self) -> int:
        """Shared memory of the kernel's own: factors of phases, absmaxima, mbarriers."""
        used = self.groups * ((8 << PHASE_QUBITS) + 16 * PHASE_QUBITS + 16) + 12 * self.stages
        return -(-used // _ALIGNMENT) * _ALIGNMENT


def plan_sequence(precision: Precision, arch: Arch, tile_qubits: int = 12) -> SequencePlan | None:
    """Return the plan at a precision; None where tensor cores make no products of four qubits."""
    if not is_legal(require_precision, precision, arch):
        return None
    if precision.exact_operands or cuda_core_width(precision) >= WIDTH:
        return None
    wgmma = arch.target == WGMMA_TARGET and precision.operand.bytes == 2
    for groups, stages in SIZES[tile_qubits]:
        plan = SequencePlan(precision, tile_qubits, groups, stages, wgmma)
        if plan.threads * plan.registers > REGISTERS:
            continue
        room = arch.shared_bytes - plan.static_bytes - plan.shared_bytes(0)
        gates = min(MAX_PRODUCTS, room // (plan.shared_bytes(1) - plan.shared_bytes(0)))
        if gates >= MIN_PRODUCTS:
            return replace(plan, gates=gates)
    return None


def for_few_tiles(plan: SequencePlan, qubits: int, sm_count: int) -> SequencePlan:
    """Return the plan with larger groups where a multiprocessor has no more tiles than these are.

    No other tile hides what a step waits for there, so a gate takes fewer of them.
    """
    each = -(-(1 << qubits - plan.tile_qubits) // sm_count)
    for steps, groups in FEW_TILES[plan.tile_qubits]:
        if plan.wgmma and each <= groups:
            return replace(plan, groups=groups, stages=groups, steps=steps)
    return plan


def kernel_name(plan: SequencePlan) -> str:
    """Return the kernel's symbol."""
    tile = f"t{plan.tile_qubits}_g{plan.groups}_s{plan.stages}_n{plan.steps}"
    return f"gate_sequence_{'sm90_' * plan.wgmma}{plan.precision.symbol}_{tile}"


def kernel_source(plan: SequencePlan) -> str:
    """Return the CUDA C++ of the plan's kernel."""
    row = plan.precision
    if plan.wgmma:
        before = '#include "device/warpgroup.cuh"\n' + wgmma_function(row.operand, 32)
        before += '#include "gates/sequence_sm90.cuh"\n'
        step = f"WgmmaStep<Operand::{row.operand.name}, {row.terms}>"
    else:
        before = '#include "gates/sequence_sm80.cuh"\n'
        step = f"MmaStep<{operand_arguments(row)}>"
    sizes = f"{plan.tile_qubits}, {plan.groups}, {plan.stages}, {plan.steps}"
    return (
        f'{before}#include "gates/sequence_kernel.cuh"\n'
        f"{size_check('SequenceArguments', SEQUENCE_ARGUMENTS)}"
        f'static_assert(sizeof(SequenceGate) == {PLACED_GATE.itemsize}, "gates");\n'
        f'static_assert(sizeof(PhaseTable) == {PHASES.itemsize}, "phases");\n'
        + kernel_entry(
            kernel_name(plan),
            "SequenceArguments",
            f"GateSequence<{step}, {sizes}>::run(args);",
            plan.threads,
            1,
        )
    )


def completed_tile(qubits: int, chosen: Iterable[int], size: int = 12) -> tuple[int, ...]:
    """Return a tile of some qubits and the lowest others.

    Raises PlanError where they do not fit.
    """
    taken = {*chosen, *range(LOW_QUBITS)}
    if len(taken) > size or qubits < size:
        raise PlanError(
            f"a sequence must fit in a tile of {size} qubits, got {len(taken)} with the "
            f"lowest {LOW_QUBITS}, of {qubits}"
        )
    free = [qubit for qubit in range(qubits) if qubit not in taken]
    return tuple(sorted([*taken, *free[: size - len(taken)]]))
