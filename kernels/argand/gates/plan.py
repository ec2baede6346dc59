"""Plans of gates on a GPU, and which are legal. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from argand.device import Arch
from argand.gates.layout import CHUNK, PLANE_COLUMNS, GateKind, plane_line_bytes
from argand.precision import Precision
from argand.runtime.plan import TARGET as WGMMA_TARGET
from argand.runtime.plan import PlanError, require_precision

MOST_WIDTH = 7
"""Qubits of a gate that has a kernel; wider ones are products of `gemm`."""
LARGEST_TILE = PLANE_COLUMNS << MOST_WIDTH
"""Amplitudes that share a scale, at most."""
CUDA_CORE_WIDTH = 3
"""Up to here complex64 gates run on CUDA cores in fp32 at every precision: memory bounds them."""
_TILE_BYTES = 16 * 1024
WARP_SPECIALIZED_BUFFERS = 3
"""Buffers of split tiles between the warpgroups that split and those that multiply."""
_BLOCK_BYTES = 1024
"""Shared memory that the system reserves for each block."""


@dataclass(frozen=True)
class GatePlan:
    """The kernel of a gate.

    Attributes:
        kind: of kernel.
        width: qubits of the gate.
        precision: of its products.
        inside: whether a chunk of 16 bytes holds two rows of a column (`gates.layout.Tile.inside`).
        stages: tiles that a block holds in shared memory.
        blocks: blocks a multiprocessor; registers and shared memory are limited for that many.
        near: of a kernel without tiles: targets whose rows are those of other lanes, one at most.
    """

    kind: GateKind
    width: int
    precision: Precision
    inside: bool
    stages: int
    blocks: int
    near: int = 0

    @property
    def warp_specialized(self) -> bool:
        """Whether half of the warpgroups split tiles while the others multiply.

        One warpgroup of a gate of the largest width has no registers for both.
        """
        return self.kind == "wgmma" and self.width == MOST_WIDTH

    @property
    def packs_terms(self) -> bool:
        """Whether the operand has the terms of a number in the 32 bits of one.

        Every block reads the matrix: to split its numbers anew takes longer than a small state.
        """
        return self.kind == "wgmma" and self.precision.operand.bytes == 2

    @property
    def item(self) -> int:
        """Bytes of an amplitude."""
        return 16 if self.precision.output == "complex128" else 8

    @property
    def columns(self) -> int:
        """Columns of a tile; none for a small state."""
        if self.kind == "wgmma":
            return PLANE_COLUMNS
        if self.kind == "direct_mma":
            return self.threads // 32 * 16
        if self.kind == "direct":  # of the threads of a block
            return self.threads << (not self.inside) >> self.near
        return 0 if self.kind == "small" else (_TILE_BYTES // self.item) >> self.width

    @property
    def copy_threads(self) -> int:
        """Threads of a block that copy tiles."""
        if self.kind == "wgmma":
            return 2 << self.width
        if self.kind == "direct_mma":
            return _DIRECT_MMA_THREADS
        return 128 if self.kind in ("fma", "permute") else 256

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 2 * self.copy_threads if self.warp_specialized else self.copy_threads

    @property
    def on_tensor_cores(self) -> bool:
        """Whether it multiplies on tensor cores."""
        return self.kind in ("direct_mma", "mma", "wgmma")

    @property
    def walks_tiles(self) -> bool:
        """Whether its blocks go from tile to tile by ``TileWalk``."""
        return self.kind in ("fma", "wgmma")

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile in shared memory."""
        return self.item * (self.columns << self.width)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        if self.kind in ("direct", "direct_mma"):
            return 0
        if self.kind == "small":
            return _TILE_BYTES
        planes = 0
        if self.kind == "wgmma":
            buffers = WARP_SPECIALIZED_BUFFERS if self.warp_specialized else 2
            line = plane_line_bytes(self.width, self.inside, self.precision.operand.bytes)
            planes = buffers * self.precision.terms * line * (1 << self.width) // 8
            # The matrix lies there on its way to registers.
            planes = max(planes, self.item << 2 * self.width)
        return self.stages * self.tile_bytes + planes


def check_gate_plan(plan: GatePlan, arch: Arch) -> None:
    """Raise PlanError with the reason where a plan cannot be compiled or run on an architecture."""
    row = plan.precision
    if not 1 <= plan.width <= MOST_WIDTH:
        raise PlanError(f"width must be 1 to {MOST_WIDTH}, got {plan.width}")
    if plan.on_tensor_cores:
        require_precision(row, arch)
        if row.exact_operands:
            raise PlanError(f"{row.name} has no tensor-core products of gates")
        least = min(_WGMMA_STAGES) if plan.kind == "wgmma" else cuda_core_width(row) + 1
        most = widest_mma(row)
        if plan.kind == "direct_mma":  # columns, in terms, fit in a warp's registers
            most = max(width for width, held in _DIRECT_MMA_BLOCKS.items() if _terms(row) in held)
        if not least <= plan.width <= most:
            raise PlanError(
                f"width must be {least} to {most} for {plan.kind} at {row.name}, got {plan.width}"
            )
    if plan.kind == "wgmma" and not _has_wgmma(row, arch, plan.width):
        raise PlanError(
            f"wgmma needs {WGMMA_TARGET} and 16-bit operands or one term of tf32, got "
            f"{arch.target}, {row.name}"
        )
    if plan.kind == "direct" and plan.width not in _DIRECT_BLOCKS:
        raise PlanError(f"direct is for {list(_DIRECT_BLOCKS)} qubits, got {plan.width}")
    if plan.kind == "direct" and (plan.item == CHUNK or plan.near + plan.inside > 1):
        raise PlanError(
            f"direct is for complex64 and one target of qubits 0 to 2, got {row.output}, "
            f"{plan.near + plan.inside}"
        )
    if plan.kind not in ("small", "direct", "direct_mma") and plan.stages < 2:
        raise PlanError(f"stages must be at least 2, got {plan.stages}")
    if plan.inside and plan.item == CHUNK:
        raise PlanError("inside is for complex64: a chunk holds one complex128")
    if plan.shared_bytes > arch.shared_bytes:
        raise PlanError(
            f"{plan.shared_bytes} bytes of shared memory are more than a block has on "
            f"{arch.target}: {arch.shared_bytes}"
        )


def cuda_core_width(precision: Precision) -> int:
    """Return the width up to which complex64 gates run on CUDA cores; wider ones fill MMAs."""
    return max(CUDA_CORE_WIDTH, precision.operand.mma_k.bit_length() - 2)


def widest_mma(precision: Precision) -> int:
    """Return the largest width of a gate whose matrix, in terms, fits in a warp's registers."""
    return MOST_WIDTH if precision.operand.bytes * precision.terms <= 4 else MOST_WIDTH - 1


def _terms(precision: Precision) -> tuple[int, int]:
    return precision.operand.bytes, precision.terms


def separate_small_products(precision: Precision, width: int) -> bool:
    """Return whether products of low-order terms have accumulators apart, or come before others.

    Each MMA truncates the accumulator in proportion to its size (``kSeparateSmallProducts``). At
    3xtf32 two blocks have no registers for it on 5 qubits.
    """
    return precision.operand.bytes == 2 or width != 5


_STAGES: tuple[tuple[int, tuple[int, int]], ...] = (
    (28, (4, 3)), (40, (5, 2)), (76, (6, 2)), (1 << 30, (8, 1)),
)  # fmt: skip
"""Stages and blocks a multiprocessor up to a number of registers of a thread: its part of the
matrix, and one and a half for each number of the state that it rounds at a time."""
_WGMMA_STAGES: Mapping[int, tuple[int, int]] = {6: (2, 2), 7: (3, 1)}
_THIRD_BLOCK_TILES = 2
"""Tiles a block, from which on three blocks a multiprocessor are faster than two on 6 qubits of a
smaller state: with fewer tiles the matrix, which each block loads, costs more (H200)."""
_WGMMA_TERMS = ((2, 1), (2, 2), (4, 1))
"""Bytes of an operand and its terms that a consumer's registers hold of a matrix on 7 qubits."""
_DIRECT_BLOCKS: Mapping[int, int] = {1: 8, 2: 6, 3: 4}
"""Blocks a multiprocessor, by the width, of threads that hold complex64 columns. With two or three
targets among qubits 0 to 2 shuffles and reads of the matrix bound them: on an H200 a gate on all
three takes 1.4 times as long as a copy of the state, and 1.08 times in tiles."""
_DIRECT_MMA_BLOCKS: Mapping[int, Mapping[tuple[int, int], int]] = {
    4: {(2, 1): 8, (2, 2): 6, (4, 1): 7, (4, 2): 5},
    5: {(2, 1): 4, (2, 2): 2, (4, 1): 4, (4, 2): 2},
    6: {(4, 1): 2},
}
"""Blocks a multiprocessor at least, by the width and by the bytes of an operand and its terms."""
_DIRECT_MMA_THREADS = 128
_SPLITS_OFTEN = {4: ((4, 2),), 5: ((4, 2),), 6: ((4, 1),)}
"""Bytes and terms, by the width, at which instructions bound the kernel with tiles at any size: it
splits a column into terms once for every 16 rows, and the one without tiles once in all."""
_SMALLER_STATE = 1 << 20
"""Bytes of the state a multiprocessor, up to which latency bounds a gate: 4 and 5 qubits are faster
without tiles and their barriers, 6 by wgmma with a third block. Beyond, memory does, and copies
longer pieces of fewer tiles at a time faster (H200)."""


def plan_gate(
    precision: Precision, arch: Arch, *, width: int, inside: bool, monomial: bool, columns: int,
    near: int = 0, sm_count: int,
) -> GatePlan | None:  # fmt: skip
    """Return the plan for a gate; None where it is a product of `gemm`.

    Args:
        precision: of the call.
        arch: the GPU's.
        width: qubits of the gate.
        inside: whether qubit 0 is a target.
        monomial: whether its matrix has one entry a row and column.
        columns: how many columns of 2^width amplitudes there are.
        near: how many targets lie near each other in memory (`gates.direct.near_targets`).
        sm_count: multiprocessors of the GPU.
    """
    if width > MOST_WIDTH:
        return None
    if monomial:
        inside = inside and precision.output == "complex64"
        plans = [_with_stages(GatePlan("permute", width, precision, inside, 2, 1), arch)]
    elif not (plans := candidate_plans(precision, arch, width=width, inside=inside, near=near)):
        return None
    elif plans[0].item * (columns << width) > _SMALLER_STATE * sm_count:
        often = _terms(precision) in _SPLITS_OFTEN.get(width, ())
        plans = [plan for plan in plans if often or plan.kind != "direct_mma"]
    elif width == 6 and columns // PLANE_COLUMNS >= 3 * sm_count * _THIRD_BLOCK_TILES:
        plans = [replace(plan, blocks=3) if plan.kind == "wgmma" else plan for plan in plans]
    small = GatePlan("small", width, precision, False, 1, 1)
    return next((plan for plan in plans if plan.columns <= columns), small)


def candidate_plans(
    precision: Precision, arch: Arch, *, width: int, inside: bool, near: int
) -> list[GatePlan]:
    """Return the plans whose kernels compute a gate, the fastest first; none where `gemm` does.

    Arguments are those of `plan_gate`.
    """
    inside = inside and precision.output == "complex64"
    if not precision.exact_operands and width > cuda_core_width(precision):
        within = width <= widest_mma(precision)
        return mma_plans(precision, arch, width=width, inside=inside) if within else []
    fma = _with_stages(GatePlan("fma", width, precision, inside, 2, 1), arch)
    if width in _DIRECT_BLOCKS and precision.output == "complex64" and near + inside <= 1:
        blocks = _DIRECT_BLOCKS[width]
        return [GatePlan("direct", width, precision, inside, 0, blocks, near=near), fma]
    return [fma]


def mma_plans(precision: Precision, arch: Arch, *, width: int, inside: bool) -> list[GatePlan]:
    """Return the plans on tensor cores for a gate, the fastest first."""
    plans = [GatePlan("mma", width, precision, inside, 2, 1)]
    blocks = _DIRECT_MMA_BLOCKS.get(width, {}).get(_terms(precision))
    if blocks is not None:
        plans.insert(0, GatePlan("direct_mma", width, precision, inside, 0, blocks))
    if _has_wgmma(precision, arch, width):
        plans.insert(0, GatePlan("wgmma", width, precision, inside, 2, 1))
    return [plan if plan.kind == "direct_mma" else _with_stages(plan, arch) for plan in plans]


def _has_wgmma(precision: Precision, arch: Arch, width: int) -> bool:
    held = width in _WGMMA_STAGES and _terms(precision) in _WGMMA_TERMS
    return held and arch.target == WGMMA_TARGET


def _with_stages(plan: GatePlan, arch: Arch) -> GatePlan:
    """Return the plan with its stages, or as many as the architecture has room for."""
    if plan.kind == "mma":
        # Real and imaginary part of 2^w x 16 numbers a warp, in terms: registers of a lane.
        matrix = (plan.precision.operand.bytes * plan.precision.terms << plan.width) // 4
        registers = max(16 if plan.width == 4 else 32, matrix) + 48 // plan.precision.operand.bytes
        stages, blocks = next(found for most, found in _STAGES if registers <= most)
    elif plan.kind == "wgmma":
        stages, blocks = _WGMMA_STAGES[plan.width]
    else:
        stages, blocks = 3, (4 if plan.width <= CUDA_CORE_WIDTH else 3)
    room = arch.shared_bytes // blocks - _BLOCK_BYTES
    fixed = replace(plan, stages=0).shared_bytes
    stages = max(2, min(stages, (room - fixed - _static_bytes(plan)) // plan.tile_bytes))
    return replace(plan, stages=stages, blocks=blocks)


def _static_bytes(plan: GatePlan) -> int:
    """Return the largest static shared memory: wide gates on CUDA cores keep their matrix there."""
    if plan.kind == "wgmma":
        return 1024
    return 16 * 1024 if plan.kind == "fma" and plan.width > CUDA_CORE_WIDTH else 2 * 1024
