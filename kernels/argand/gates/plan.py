"""Plans of gates on a GPU, and which are legal; `gates.heuristics` takes one.

Needs no GPU and no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argand.device import Arch
from argand.gates.layout import CHUNK, PLANE_COLUMNS, GateKind, plane_line_bytes
from argand.precision import Precision
from argand.runtime.plan import WGMMA_TARGET, PlanError, require_precision

MAX_WIDTH = 7
"""Qubits of a gate that has a kernel; wider ones are products of `gemm`."""
LARGEST_TILE = PLANE_COLUMNS << MAX_WIDTH
"""Amplitudes that share a scale, at most."""
CUDA_CORE_WIDTH = 3
"""Up to here complex64 gates run on CUDA cores in fp32 at every precision: memory bounds them."""
_TILE_BYTES = 16 * 1024
"""Bytes of a tile of the state in shared memory, of kernels that have one."""
WARP_SPECIALIZED_BUFFERS = 3
"""Buffers of split tiles between the warpgroups that split and those that multiply."""
WGMMA_STAGES: Mapping[int, tuple[int, int]] = {6: (2, 2), 7: (3, 1)}
"""Stages and blocks per multiprocessor, by the width."""
_WGMMA_TERMS = ((2, 1), (2, 2), (4, 1))
"""Bytes of an operand and its terms that a consumer's registers hold of a matrix on 7 qubits."""
DIRECT_BLOCKS: Mapping[int, int] = {1: 8, 2: 6, 3: 4}
"""Blocks a multiprocessor, by the width, of threads that hold complex64 columns. With two or three
targets among qubits 0 to 2 shuffles and reads of the matrix bound them, so that tiles are
faster."""
DIRECT_MMA_BLOCKS: Mapping[int, Mapping[tuple[int, int], int]] = {
    4: {(2, 1): 8, (2, 2): 6, (4, 1): 7, (4, 2): 5},
    5: {(2, 1): 4, (2, 2): 2, (4, 1): 4, (4, 2): 2},
    6: {(4, 1): 2},
}
"""Blocks a multiprocessor at least, by the width and by the bytes of an operand and its terms."""
_DIRECT_MMA_THREADS = 128
WHOLE_SECTORS: tuple[GateKind, ...] = ("direct", "mma")
"""Kernels that have the amplitudes that a control excludes at hand where they write others."""


@dataclass(frozen=True)
class GatePlan:
    """The kernel of a gate.

    Attributes:
        kind: the kind of kernel.
        width: qubits of the gate.
        precision: the precision of its products.
        targets_qubit0: whether a chunk of 16 bytes holds two rows of a column
            (`gates.layout.Tile.targets_qubit0`).
        stages: tiles that a block holds in shared memory.
        blocks: blocks per multiprocessor; registers and shared memory are limited for that many.
        near: in a kernel without tiles, the targets whose rows other lanes hold, at most one.
        most_blocks: blocks that a multiprocessor has at a time; 0 for as many as it has room for.
        whole_sectors: whether amplitudes that a control excludes are written back as they were
            where those of the same sector change (`gates.layout.controls_in_tile`).
    """

    kind: GateKind
    width: int
    precision: Precision
    targets_qubit0: bool
    stages: int
    blocks: int
    near: int = 0
    whole_sectors: bool = False
    most_blocks: int = 0

    @property
    def warp_specialized(self) -> bool:
        """Whether half of the warpgroups split tiles while the others multiply.

        One warpgroup of a gate of the largest width has no registers for both.
        """
        return self.kind == "wgmma" and self.width == MAX_WIDTH

    @property
    def packs_terms(self) -> bool:
        """Whether the operand has the terms of a number in the 32 bits of one.

        Every block reads the matrix: to split its numbers again takes longer than a small state.
        """
        return self.kind == "wgmma" and self.precision.operand.bytes == 2

    @property
    def reads_fragments(self) -> bool:
        """Whether the operand is the matrix's terms in the order of the kernel's fragments."""
        return self.kind == "direct_mma"

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
            return self.threads << (not self.targets_qubit0) >> self.near
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
    def operand_bytes(self) -> int:
        """Bytes of the operand, of a matrix that is not monomial, and at least of the matrix."""
        each = 2 * self.precision.operand.bytes * self.precision.terms
        return max(self.item, each if self.reads_fragments else 0) << 2 * self.width

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
        if self.kind in ("small", "direct", "direct_mma"):
            return 0
        planes = 0
        if self.kind == "wgmma":
            buffers = WARP_SPECIALIZED_BUFFERS if self.warp_specialized else 2
            line = plane_line_bytes(self.width, self.targets_qubit0, self.precision.operand.bytes)
            planes = buffers * self.precision.terms * line * (1 << self.width) // 8
            # The matrix lies there on its way to registers.
            planes = max(planes, self.item << 2 * self.width)
        return self.stages * self.tile_bytes + planes


def check_gate_plan(plan: GatePlan, arch: Arch) -> None:
    """Raise PlanError with the reason where a plan cannot be compiled or run on an architecture."""
    row = plan.precision
    if not 1 <= plan.width <= MAX_WIDTH:
        raise PlanError(f"width must be 1 to {MAX_WIDTH}, got {plan.width}")
    if plan.on_tensor_cores:
        require_precision(row, arch)
        if row.exact_operands:
            raise PlanError(f"{row.name} has no tensor-core products of gates")
        least = min(WGMMA_STAGES) if plan.kind == "wgmma" else cuda_core_width(row) + 1
        most = widest_mma(row)
        if plan.kind == "direct_mma":  # columns, in terms, fit in a warp's registers
            most = max(width for width, held in DIRECT_MMA_BLOCKS.items() if terms_of(row) in held)
        if not least <= plan.width <= most:
            raise PlanError(
                f"width must be {least} to {most} for {plan.kind} at {row.name}, got {plan.width}"
            )
    if plan.kind == "wgmma" and not has_wgmma(row, arch, plan.width):
        raise PlanError(
            f"wgmma needs {WGMMA_TARGET} and 16-bit operands or one term of tf32, got "
            f"{arch.target}, {row.name}"
        )
    if plan.kind == "direct" and plan.width not in DIRECT_BLOCKS:
        raise PlanError(f"direct is for {list(DIRECT_BLOCKS)} qubits, got {plan.width}")
    if plan.kind == "direct" and (plan.item == CHUNK or plan.near + plan.targets_qubit0 > 1):
        raise PlanError(
            f"direct is for complex64 and one target of qubits 0 to 2, got {row.output}, "
            f"{plan.near + plan.targets_qubit0}"
        )
    if plan.whole_sectors and plan.kind not in WHOLE_SECTORS:
        raise PlanError(f"whole_sectors is for {', '.join(WHOLE_SECTORS)}, got {plan.kind}")
    if plan.kind not in ("small", "direct", "direct_mma") and plan.stages < 2:
        raise PlanError(f"stages must be at least 2, got {plan.stages}")
    if plan.targets_qubit0 and plan.item == CHUNK:
        raise PlanError("targets_qubit0 is for complex64: a chunk holds one complex128")
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
    return MAX_WIDTH if precision.operand.bytes * precision.terms <= 4 else MAX_WIDTH - 1


def terms_of(precision: Precision) -> tuple[int, int]:
    """Return the bytes of an operand and its terms, by which registers are counted."""
    return precision.operand.bytes, precision.terms


def separate_small_products(precision: Precision, width: int) -> bool:
    """Return whether products of low-order terms have accumulators apart, or come before others.

    Each MMA truncates the accumulator in proportion to its size (``kSeparateSmallProducts``). At
    3xtf32 two blocks have no registers for it on 5 qubits.
    """
    return precision.operand.bytes == 2 or width != 5


def has_wgmma(precision: Precision, arch: Arch, width: int) -> bool:
    """Return whether wgmma multiplies a gate of this width."""
    held = width in WGMMA_STAGES and terms_of(precision) in _WGMMA_TERMS
    return held and arch.target == WGMMA_TARGET
