"""Plans of gates on a GPU, what is legal, the CUDA C++. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from argand.device import Arch
from argand.gates.layout import CHUNK, PLANE_COLUMNS, GateKind, core_row_bytes, joint_parts
from argand.precision import Precision
from argand.runtime.arguments import Fields, size_check
from argand.runtime.plan import TARGET as WGMMA_TARGET
from argand.runtime.plan import PlanError, require_precision
from argand.runtime.wgmma import wgmma_function

MOST_WIDTH = 7
"""Qubits of a gate that has a kernel; wider ones are products of `gemm`."""
LARGEST_TILE = PLANE_COLUMNS << MOST_WIDTH
"""Amplitudes that share a scale, at most."""
CUDA_CORE_WIDTH = 3
"""Up to here complex64 gates run on CUDA cores in fp32 at every precision: memory bounds them."""
_TILE_BYTES = 16 * 1024
_MOST_SEGMENTS = 17
_MOST_THREAD_BITS = 9
_MOST_CHUNKS = 8
_WARP_SPECIALIZED_BUFFERS = 3
"""Buffers of split tiles between the warpgroups that split and those that multiply."""
_BLOCK_BYTES = 1024
"""Shared memory that the system reserves for each block."""

ARGUMENTS: Fields = (
    ("char*", "state"), ("const void*", "matrix"), ("int64", "control_offset"),
    ("int64", "matrix_exponent"),
    ("int64", f"thread_offset[{_MOST_THREAD_BITS}]"), ("int64", f"chunk_offset[{_MOST_CHUNKS}]"),
    ("int64", f"result_offset[{_MOST_THREAD_BITS}]"), ("int64", "register_offset[3]"),
    ("uint32", f"thread_mask[{_MOST_THREAD_BITS}]"), ("uint32", f"chunk_mask[{_MOST_CHUNKS}]"),
    ("uint32", "tiles"), ("uint32", "segments"),
    ("uint32", f"segment_mask[{_MOST_SEGMENTS}]"), ("uint32", f"segment_shift[{_MOST_SEGMENTS}]"),
    ("uint32", f"row_mask[{MOST_WIDTH}]"),
    ("uint32", f"read_mask[{_MOST_THREAD_BITS}]"),
    ("uint32", "column_mask[2]"), ("uint32", "pair_mask"),
    ("uint32", f"result_mask[{_MOST_THREAD_BITS}]"), ("uint32", "register_mask[3]"),
    ("uint32", f"thread_row[{_MOST_THREAD_BITS}]"), ("uint32", f"chunk_row[{_MOST_CHUNKS}]"),
    ("uint32", f"thread_plane[{_MOST_THREAD_BITS}]"), ("uint32", f"chunk_plane[{_MOST_CHUNKS}]"),
    ("int", "controls_qubit0"),
)  # fmt: skip
"""Members of ``GateArguments`` in ``cuda/gates/tile.cuh``."""


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
        warp_specialized: of wgmma: half of the warpgroups split tiles while the others multiply.
    """

    kind: GateKind
    width: int
    precision: Precision
    inside: bool
    stages: int
    blocks: int
    warp_specialized: bool = False

    @property
    def item(self) -> int:
        """Bytes of an amplitude."""
        return 16 if self.precision.output == "complex128" else 8

    @property
    def columns(self) -> int:
        """Columns of a tile; none for a small state."""
        if self.kind == "wgmma":
            return PLANE_COLUMNS
        return 0 if self.kind == "small" else (_TILE_BYTES // self.item) >> self.width

    @property
    def copy_threads(self) -> int:
        """Threads of a block that copy tiles."""
        if self.kind == "wgmma":
            return 2 << self.width
        return {"fma": 128, "permute": 128, "mma": 256, "small": 256}[self.kind]

    @property
    def threads(self) -> int:
        """Of a block."""
        return 2 * self.copy_threads if self.warp_specialized else self.copy_threads

    @property
    def tile_bytes(self) -> int:
        """Of a tile in shared memory."""
        return self.item * (self.columns << self.width)

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        if self.kind == "small":
            return _TILE_BYTES
        planes = 0
        if self.kind == "wgmma":
            buffers = _WARP_SPECIALIZED_BUFFERS if self.warp_specialized else 2
            rows = core_row_bytes(self.width, self.inside)
            planes = buffers * self.precision.terms * rows * (1 << self.width) // 8
        return self.stages * self.tile_bytes + planes


def check_gate_plan(plan: GatePlan, arch: Arch) -> None:
    """Raise PlanError with the reason where a plan cannot be compiled or run on an architecture."""
    row = plan.precision
    if not 1 <= plan.width <= MOST_WIDTH:
        raise PlanError(f"width must be 1 to {MOST_WIDTH}, got {plan.width}")
    if plan.kind in ("mma", "wgmma"):
        require_precision(row, arch)
        if row.exact_operands:
            raise PlanError(f"{row.name} has no tensor-core products of gates")
        least = cuda_core_width(row) + 1 if plan.kind == "mma" else 6
        if not least <= plan.width <= widest_mma(row):
            raise PlanError(
                f"width must be {least} to {widest_mma(row)} for {plan.kind} at {row.name}, "
                f"got {plan.width}"
            )
    if plan.kind == "wgmma" and (arch.target != WGMMA_TARGET or row.operand.bytes != 2):
        raise PlanError(
            f"wgmma needs {WGMMA_TARGET} and 16-bit operands, got {arch.target}, {row.name}"
        )
    if plan.warp_specialized and (plan.kind != "wgmma" or plan.width != MOST_WIDTH):
        raise PlanError(
            f"warp specialization is for wgmma of {MOST_WIDTH} qubits, "
            f"got {plan.kind}, {plan.width}"
        )
    if plan.kind != "small" and plan.stages < 2:
        raise PlanError(f"stages must be at least 2, got {plan.stages}")
    if plan.inside and plan.item == CHUNK:
        raise PlanError("inside is for complex64: a chunk holds one complex128")
    if plan.shared_bytes > arch.shared_bytes:
        raise PlanError(
            f"{plan.shared_bytes} bytes of shared memory are more than a block has on "
            f"{arch.target}: {arch.shared_bytes}"
        )


def cuda_core_width(precision: Precision) -> int:
    """Largest width of a complex64 gate that runs on CUDA cores; wider ones fill whole MMAs."""
    return max(CUDA_CORE_WIDTH, precision.operand.mma_k.bit_length() - 2)


def widest_mma(precision: Precision) -> int:
    """Largest width of a gate whose matrix, in terms, fits in a warp's registers."""
    return MOST_WIDTH if precision.operand.bytes * precision.terms <= 4 else MOST_WIDTH - 1


def separate_small_products(precision: Precision, width: int) -> bool:
    """Whether products with low-order terms are accumulated apart from the others, or before them.

    Each MMA truncates the accumulator in proportion to its size (``kSeparateSmallProducts``). At
    3xtf32 two blocks have no registers for it on 5 qubits.
    """
    return precision.operand.bytes == 2 or width != 5


_STAGES: Mapping[int, Mapping[int, tuple[int, int]]] = {
    2: {16: (5, 2), 32: (6, 2), 64: (8, 1), 128: (8, 1)},
    4: {16: (4, 3), 32: (6, 2), 64: (6, 2), 128: (8, 1)},
}
"""Stages and blocks a multiprocessor, by the bytes of an operand and by the registers of the matrix
in a thread."""
_WGMMA_STAGES: Mapping[int, tuple[int, int]] = {6: (3, 2), 7: (3, 1)}
_WARP_SPECIALIZED_WIDTHS: tuple[int, ...] = (7,)
_CUDA_CORE_STAGES, _WIDE_CUDA_CORE_STAGES = (3, 4), (3, 3)


def plan_gate(
    precision: Precision, arch: Arch, *, width: int, inside: bool, monomial: bool, columns: int
) -> GatePlan | None:
    """The plan for a gate; None where it is a product of `gemm`.

    Args:
        precision: of the call.
        arch: the GPU's.
        width: qubits of the gate.
        inside: whether qubit 0 is a target.
        monomial: whether its matrix has one entry a row and column.
        columns: how many columns of 2^width amplitudes there are.
    """
    inside = inside and precision.output == "complex64"
    if width > MOST_WIDTH:
        return None
    plans: list[GatePlan]
    if monomial:
        plans = [_with_stages(GatePlan("permute", width, precision, inside, 2, 1), arch)]
    elif precision.exact_operands or width <= cuda_core_width(precision):
        plans = [_with_stages(GatePlan("fma", width, precision, inside, 2, 1), arch)]
    elif width > widest_mma(precision):
        return None
    else:
        plans = mma_plans(precision, arch, width=width, inside=inside)
    small = GatePlan("small", width, precision, False, 1, 1)
    return next((plan for plan in plans if plan.columns <= columns), small)


def mma_plans(precision: Precision, arch: Arch, *, width: int, inside: bool) -> list[GatePlan]:
    """The plans on tensor cores for a gate, the fastest first."""
    plans = [GatePlan("mma", width, precision, inside, 2, 1)]
    if _has_wgmma(precision, arch, width):
        plans.insert(0, GatePlan("wgmma", width, precision, inside, 2, 1))
        if width in _WARP_SPECIALIZED_WIDTHS:
            plans.insert(0, replace(plans[0], warp_specialized=True))
    return [_with_stages(plan, arch) for plan in plans]


def _has_wgmma(precision: Precision, arch: Arch, width: int) -> bool:
    return arch.target == WGMMA_TARGET and precision.operand.bytes == 2 and width in _WGMMA_STAGES


def _with_stages(plan: GatePlan, arch: Arch) -> GatePlan:
    """The plan with its stages, or as many as the architecture has room for."""
    if plan.kind == "mma":
        # Real and imaginary part of 2^w x 16 numbers a warp, in terms: registers of a lane.
        registers = (plan.precision.operand.bytes * plan.precision.terms << plan.width) // 4
        least = 16 if plan.width == 4 else 32
        stages, blocks = _STAGES[plan.precision.operand.bytes][max(least, registers)]
    elif plan.kind == "wgmma":
        stages, blocks = _WGMMA_STAGES[plan.width]
    else:
        stages, blocks = (
            _CUDA_CORE_STAGES if plan.width <= CUDA_CORE_WIDTH else _WIDE_CUDA_CORE_STAGES
        )
    room = arch.shared_bytes // blocks - _BLOCK_BYTES
    fixed = replace(plan, stages=0).shared_bytes
    stages = max(2, min(stages, (room - fixed - _static_bytes(plan)) // plan.tile_bytes))
    return replace(plan, stages=stages, blocks=blocks)


def _static_bytes(plan: GatePlan) -> int:
    """Largest static shared memory: wide gates on CUDA cores keep their matrix there."""
    return 16 * 1024 if plan.kind == "fma" and plan.width > CUDA_CORE_WIDTH else 2 * 1024


def kernel_name(plan: GatePlan) -> str:
    """The kernel's symbol: operation, kind, precision, width, layout."""
    where = "inside" if plan.inside else "outside"
    precision = plan.precision.symbol if plan.kind in ("mma", "wgmma") else f"fp{4 * plan.item}"
    kind = "warp_specialized" if plan.warp_specialized else plan.kind
    return f"gate_{kind}_{precision}_{plan.width}_{where}_s{plan.stages}"


def gate_source(plan: GatePlan) -> str:
    """CUDA C++ of the plan's kernel."""
    row = plan.precision
    inside = "true" if plan.inside else "false"
    real = "double" if plan.item == CHUNK else "float"
    body = ""
    if plan.kind in ("fma", "permute"):
        header = "gates/cuda_core_kernel.cuh"
        sizes = f"{plan.tile_bytes}, {plan.threads}, {plan.stages}"
        body = f"{plan.kind}_gate<{real}, {plan.width}, {inside}, {sizes}>(args);"
    elif plan.kind == "small":
        header = "gates/cuda_core_kernel.cuh"
        body = f"small_gate<{real}, {plan.width}, {plan.threads}>(args);"
    elif plan.kind == "mma":
        header = "gates/sm80_kernel.cuh"
        separate = "true" if separate_small_products(row, plan.width) else "false"
        roundings = f"Rounding::{row.roundings[0]}, Rounding::{row.roundings[-1]}"
        body = (
            f"MmaGate<Operand::{row.operand.name}, {row.terms}, {roundings}, {plan.width}, "
            f"{inside}, {plan.stages}, {separate}> gate; gate.run(args);"
        )
    else:
        header = (
            "gates/sm90_warp_specialized_kernel.cuh"
            if plan.warp_specialized
            else "gates/sm90_kernel.cuh"
        )
        name = "WarpSpecializedGate" if plan.warp_specialized else "WgmmaGate"
        buffers = f", {_WARP_SPECIALIZED_BUFFERS}" if plan.warp_specialized else ""
        body = (
            f"{name}<Operand::{row.operand.name}, {row.terms}, {plan.width}, {inside}, "
            f"{plan.stages}{buffers}> gate; gate.run(args);"
        )
    before = ""
    if plan.kind == "wgmma":
        both = 2 if joint_parts(plan.width, plan.inside) else 1
        before = '#include "device/warpgroup.cuh"\n' + wgmma_function(
            row.operand, both * PLANE_COLUMNS, both
        )
    return (
        f'{before}#include "{header}"\n'
        f"{size_check('GateArguments', ARGUMENTS)}"
        f'extern "C" __global__ void __launch_bounds__({plan.threads}, {plan.blocks})\n'
        f"{kernel_name(plan)}(const __grid_constant__ GateArguments args) {{ {body} }}\n"
    )


def argument_values(values: Mapping[str, object]) -> dict[str, Any]:
    """A value for each member: 0 where none is given, lists filled up with 0."""
    found: dict[str, Any] = {}
    for _, member in ARGUMENTS:
        name, _, length = member.partition("[")
        value = values.get(name, 0)
        if length:
            given = list(value) if isinstance(value, (list, tuple)) else []
            found[name] = (*given, *[0] * (int(length[:-1]) - len(given)))
        else:
            found[name] = value
    return found
