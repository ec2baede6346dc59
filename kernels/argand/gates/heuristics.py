"""The choice of a gate's plan on a GPU. Needs no GPU and no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.device import Arch
from argand.gates.canonical import GateForm, GatePlace
from argand.gates.direct import near_targets, piece_bytes
from argand.gates.layout import CHUNK, PLANE_COLUMNS, controls_in_tile, tile_columns
from argand.gates.plan import (
    CUDA_CORE_WIDTH,
    DIRECT_BLOCKS,
    DIRECT_MMA_BLOCKS,
    MAX_WIDTH,
    WGMMA_STAGES,
    WHOLE_SECTORS,
    GatePlan,
    cuda_core_width,
    has_wgmma,
    terms_of,
    widest_mma,
)
from argand.multiprocessor import RESERVED_BYTES
from argand.precision import Precision

_STAGES: tuple[tuple[int, tuple[int, int]], ...] = (
    (28, (4, 3)), (40, (5, 2)), (76, (6, 2)), (1 << 30, (8, 1)),
)  # fmt: skip
"""Stages and blocks per multiprocessor up to a number of registers of a thread: its part of the
matrix, and one and a half for each number of the state that it rounds at a time."""
_THIRD_BLOCK_TILES = 4
"""Tiles a block, from which on three blocks per multiprocessor are faster than two on 6 qubits of a
smaller state: with fewer tiles the matrix, which each block loads, costs more (H200)."""
_SPLITS_OFTEN = {4: ((4, 2),), 5: ((4, 2),), 6: ((4, 1),)}
"""Bytes and terms, by the width, at which instructions bound the kernel with tiles at any size: it
splits a column into terms once for every 16 rows, and the one without tiles once in all."""
_LOW_CONTROL_WIDTH = 5
"""Qubits up to which tiles that are written whole are faster than kernels that write parts of
sectors where qubit 0 or 1 is a control (H200)."""
_IN_L2 = 384 << 10
"""Bytes a multiprocessor that L2 holds. Parts of sectors cost less there than tiles on 5 qubits;
narrower gates are faster by whole sectors from half of it on (H200)."""
_FEWER_BLOCKS = {4: 5, 5: 3}
"""Blocks a multiprocessor without tiles, by the width, where L2 does not hold the state: with more
of them memory copies the rows of too many columns at a time (H200)."""
_SMALLER_STATE = 1 << 20
"""Bytes of the state a multiprocessor, up to which latency bounds a gate on 6 qubits: a third block
by wgmma takes less. Beyond, memory does, and copies fewer tiles at a time faster (H200)."""
_WITHOUT_TILES = 2 << 20
"""Bytes of the state a multiprocessor, up to which 4 and 5 qubits are faster without tiles and
their barriers. Beyond, memory copies longer pieces faster (H200)."""
_LONG_PIECE = 256
"""Bytes that lie together of a warp's columns, from which on 4 and 5 qubits are faster without
tiles in any state: a target below qubit 5 puts rows beside each other (H200)."""


@dataclass(frozen=True)
class GateTraits:
    """Traits of a gate on a state that its plan depends on.

    Attributes:
        width: qubits of the gate.
        columns: how many columns of 2^width amplitudes there are.
        targets_qubit0: whether qubit 0 is a target.
        monomial: whether its matrix has one entry a row and column.
        near: how many targets lie near each other in memory (`gates.direct.near_targets`).
        low_controls: the controls that have both values in a sector (`layout.controls_in_tile`).
        piece: bytes that lie together of a warp's columns (`gates.direct.piece_bytes`).
    """

    width: int
    columns: int
    targets_qubit0: bool = False
    monomial: bool = False
    near: int = 0
    low_controls: tuple[int, ...] = ()
    piece: int = 0

    @classmethod
    def of(cls, qubits: int, form: GateForm | GatePlace, item: int) -> GateTraits:
        """Return the traits of a gate on a state of ``qubits`` qubits, of ``item`` bytes each."""
        free = tile_columns(qubits, form.targets, form.controls, item)
        return cls(
            form.width, 2 ** len(free), form.targets[0] == 0, form.monomial,
            len(near_targets(form.targets)),
            tuple(controls_in_tile(form.controls, item, sectors=True)),
            piece_bytes(qubits, form.targets, form.controls),
        )  # fmt: skip


def plan_gate(
    traits: GateTraits, precision: Precision, arch: Arch, sm_count: int
) -> GatePlan | None:
    """Return the plan for a gate on ``sm_count`` multiprocessors; None for a product of `gemm`."""
    width, columns, monomial = traits.width, traits.columns, traits.monomial
    targets_qubit0, low_controls = traits.targets_qubit0, traits.low_controls
    if width > MAX_WIDTH:
        return None
    state_bytes = (16 if precision.output == "complex128" else 8) * (columns << width)
    in_l2 = _IN_L2 * sm_count
    # Columns have both values of qubit 0.
    touched_bytes = state_bytes << len(set(low_controls) - {0})
    if monomial:
        targets_qubit0 = targets_qubit0 and precision.output == "complex64"
        plans = [_with_stages(GatePlan("permute", width, precision, targets_qubit0, 2, 1), arch)]
    elif not (
        plans := candidate_plans(
            precision, arch, width=width, targets_qubit0=targets_qubit0, near=traits.near
        )
    ):
        return None
    elif low_controls and width <= _LOW_CONTROL_WIDTH and touched_bytes > in_l2 >> (width < 5):
        plans.sort(key=lambda plan: plan.kind not in WHOLE_SECTORS)
        plans = [with_whole_sectors(plan) if plan.kind in WHOLE_SECTORS else plan for plan in plans]
    elif state_bytes > _WITHOUT_TILES * sm_count and traits.piece < _LONG_PIECE:
        splits_often = terms_of(precision) in _SPLITS_OFTEN.get(width, ())
        plans = [plan for plan in plans if splits_often or plan.kind != "direct_mma"]
    elif (
        width == 6 and state_bytes <= _SMALLER_STATE * sm_count
        and columns // PLANE_COLUMNS >= 3 * sm_count * _THIRD_BLOCK_TILES
    ):  # fmt: skip
        plans = [replace(plan, blocks=3) if plan.kind == "wgmma" else plan for plan in plans]
    if state_bytes > in_l2:
        plans = [_with_fewer_blocks(plan) for plan in plans]
    small = GatePlan("small", width, precision, False, 1, 1)
    return next((plan for plan in plans if plan.columns <= columns), small)


def candidate_plans(
    precision: Precision, arch: Arch, *, width: int, targets_qubit0: bool, near: int
) -> list[GatePlan]:
    """Return the plans whose kernels compute a gate, the fastest first; none where `gemm` does.

    ``width``, ``targets_qubit0`` and ``near`` are those of `GateTraits`.
    """
    targets_qubit0 = targets_qubit0 and precision.output == "complex64"
    if not precision.exact_operands and width > cuda_core_width(precision):
        if width > widest_mma(precision):
            return []
        return mma_plans(precision, arch, width=width, targets_qubit0=targets_qubit0)
    fma = _with_stages(GatePlan("fma", width, precision, targets_qubit0, 2, 1), arch)
    if width in DIRECT_BLOCKS and precision.output == "complex64" and near + targets_qubit0 <= 1:
        blocks = DIRECT_BLOCKS[width]
        return [GatePlan("direct", width, precision, targets_qubit0, 0, blocks, near=near), fma]
    return [fma]


def mma_plans(
    precision: Precision, arch: Arch, *, width: int, targets_qubit0: bool
) -> list[GatePlan]:
    """Return the plans on tensor cores for a gate, the fastest first."""
    plans = [GatePlan("mma", width, precision, targets_qubit0, 2, 1)]
    blocks = DIRECT_MMA_BLOCKS.get(width, {}).get(terms_of(precision))
    if blocks is not None:
        plans.insert(0, GatePlan("direct_mma", width, precision, targets_qubit0, 0, blocks))
    if has_wgmma(precision, arch, width):
        plans.insert(0, GatePlan("wgmma", width, precision, targets_qubit0, 2, 1))
    return [plan if plan.kind == "direct_mma" else _with_stages(plan, arch) for plan in plans]


def with_whole_sectors(plan: GatePlan) -> GatePlan:
    """Return the plan of a kernel of `WHOLE_SECTORS`, with registers for what does not change."""
    blocks = plan.blocks * 3 // 4 if plan.kind == "direct" else plan.blocks
    return replace(plan, blocks=blocks, whole_sectors=True)


def _with_fewer_blocks(plan: GatePlan) -> GatePlan:
    """Return a plan without tiles on tensor cores for a state that L2 does not hold."""
    if plan.kind != "direct_mma":
        return plan
    return replace(plan, most_blocks=_FEWER_BLOCKS.get(plan.width, 0))


def _with_stages(plan: GatePlan, arch: Arch) -> GatePlan:
    """Return the plan with its stages, or as many as the architecture has room for."""
    if plan.kind == "mma":
        # Real and imaginary part of 2^w x 16 numbers per warp, in terms: registers of a lane.
        matrix = (plan.precision.operand.bytes * plan.precision.terms << plan.width) // 4
        registers = max(16 if plan.width == 4 else 32, matrix) + 48 // plan.precision.operand.bytes
        stages, blocks = next(found for most, found in _STAGES if registers <= most)
    elif plan.kind == "wgmma":
        stages, blocks = WGMMA_STAGES[plan.width]
    else:
        # From 5 qubits on fused multiply-adds in fp32 take longer than copies: a fourth block gains
        # more than a third stage where there is room for it (H200).
        busy = plan.kind == "fma" and plan.width >= 5 and plan.item < CHUNK
        four = 4 * (2 * plan.tile_bytes + _static_bytes(plan) + RESERVED_BYTES) <= arch.shared_bytes
        stages, blocks = (2, 4) if busy and four else (3, 4 if plan.width <= CUDA_CORE_WIDTH else 3)
    room = arch.shared_bytes // blocks - RESERVED_BYTES
    fixed = replace(plan, stages=0).shared_bytes
    stages = max(2, min(stages, (room - fixed - _static_bytes(plan)) // plan.tile_bytes))
    return replace(plan, stages=stages, blocks=blocks)


def _static_bytes(plan: GatePlan) -> int:
    """Return the largest static shared memory: wide gates on CUDA cores keep their matrix there."""
    if plan.kind == "wgmma":
        return 1024
    return 16 * 1024 if plan.kind == "fma" and plan.width > CUDA_CORE_WIDTH else 2 * 1024
