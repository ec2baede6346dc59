"""The pass that lays an operand out in planes for the wgmma family: plan, grid, source.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm_plan import precision_fields
from argand.kernel_arguments import size_check
from argand.precision import Precision

LINES = 64
DEPTH = 64
THREADS = 256
_SCAN_TILES = 4
"""Of DEPTH, that a block looks at. All of these as in gemm_pack.cuh."""
_BLOCKS_AHEAD = 512
"""About how many blocks run at once: so far ahead of the packing a strip is looked at."""
PITCH = 16
"""Planes are padded to a multiple of this many k."""


@dataclass(frozen=True)
class PackPlan:
    """How a source lies in memory.

    ``half_source`` says that it holds pairs of 16 bits, ``k_fast`` that k is its contiguous axis,
    ``vector`` how many complex numbers one read takes (2 needs them aligned).
    """

    half_source: bool = False
    k_fast: bool = True
    vector: int = 1


def scales(precision: Precision, plan: PackPlan) -> bool:
    """Whether lines are scaled: 16-bit sources hold what the operand format holds."""
    return precision.scaled and not plan.half_source


@dataclass(frozen=True)
class PackGrid:
    """How many blocks, and how many strips are looked at before the first is packed."""

    blocks: int
    lag: int
    strips: int


def pack_grid(
    precision: Precision, plan: PackPlan, lines: int, pitch: int, batches: int
) -> PackGrid:
    """The launch for ``batches`` sources of ``lines`` x ``pitch``."""
    strips = batches * -(-lines // LINES)
    packers = -(-pitch // DEPTH)
    if not scales(precision, plan):
        return PackGrid(strips * packers, 0, strips)
    both = packers + -(-packers // _SCAN_TILES)
    lag = min(strips, -(-_BLOCKS_AHEAD // both))
    return PackGrid((strips + lag) * both, lag, strips)


PACK_ARGUMENTS: tuple[tuple[str, str], ...] = (
    ("const void*", "x"), ("void*", "planes"),
    ("uint32*", "largest"), ("uint32*", "arrived"), ("float2*", "unscale"),
    ("int64", "line_stride"), ("int64", "k_stride"), ("int64", "batch_stride"),
    *(("int", name) for name in ("lines", "k", "pitch", "batches", "lag", "flip")),
)  # fmt: skip
"""The kernel's arguments in order: PackArguments of gemm_pack.cuh."""


def pack_kernel_name(precision: Precision, plan: PackPlan) -> str:
    """The kernel's symbol."""
    layout = f"{'k' if plan.k_fast else 'm'}{'h' if plan.half_source else 's'}{plan.vector}"
    return f"gemm_pack_{precision.symbol}_{layout}"


def pack_source(precision: Precision, plan: PackPlan) -> str:
    """The CUDA C++ of the kernel that packs such a source."""
    fields = precision_fields(precision) | {
        "scaled": str(scales(precision, plan)).lower(),
        "half_source": str(plan.half_source).lower(),
        "k_fast": str(plan.k_fast).lower(),
        "vector": plan.vector,
    }
    members = ", ".join(f".{name} = {value}" for name, value in fields.items())
    return (
        '#include "gemm_pack.cuh"\n'
        f"{size_check('PackArguments', PACK_ARGUMENTS)}"
        f"constexpr PackPlan kPlan{{{members}}};\n"
        f'extern "C" __global__ void __launch_bounds__({THREADS})\n'
        f"{pack_kernel_name(precision, plan)}(const __grid_constant__ PackArguments args) {{\n"
        "    pack_planes<kPlan>(args);\n"
        "}\n"
    )
