"""The pass that lays operands out in planes for the wgmma family: plan, blocks, source.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argand.gemm.sm80_plan import precision_fields
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import tile_group
from argand.precision import Precision
from argand.runtime.arguments import size_check

THREADS = 256
TILE = 4096
"""Of a block, and how many numbers it packs. As in gemm/pack_tile.cuh."""
_PITCH = 16
"""Planes are padded to a multiple of this many k."""
_RESIDENT_PANELS = 4
"""Strips of which all blocks run at once, where they wait for each other."""
_LONG = 1024
"""k from which on panels that are waited for have few lines."""


@dataclass(frozen=True)
class PackPlan:
    """How a source lies in memory.

    ``half_source`` says that it holds pairs of 16 bits, ``k_major`` that k is its contiguous axis,
    ``vector`` how many complex numbers one read takes (2 needs them aligned). A block packs
    ``lines`` by what is left of its `TILE`.
    """

    half_source: bool = False
    k_major: bool = True
    vector: int = 1
    lines: int = 64

    @property
    def symbol(self) -> str:
        """The plan in the kernel's name."""
        layout = f"{'k' if self.k_major else 'm'}{'h' if self.half_source else 's'}{self.vector}"
        return f"{layout}x{self.lines}"

    @property
    def blocks_per_sm(self) -> int:
        """That run at once, by their shared memory, 37 KB, and registers, 48 or 64."""
        return 5 if self.lines < 64 else 4

    @property
    def depth(self) -> int:
        """k that a block packs."""
        return TILE // self.lines

    def panels(self, lines: int, batches: int) -> int:
        """How many panels of lines a source has; each is a row of blocks."""
        return batches * -(-lines // self.lines)

    def panel_blocks(self, pitch: int) -> int:
        """Blocks of a panel."""
        return -(-pitch // self.depth)


def scales(precision: Precision, plan: PackPlan) -> bool:
    """Whether lines are scaled: 16-bit sources hold what the operand format holds."""
    return precision.scaled and not plan.half_source


def lines_of(precision: Precision, half_source: bool, pitch: int) -> int:
    """Lines of a tile: few of a long k where its blocks wait for each other.

    Then fewer of them do. Else as many as k, so that either axis may be the contiguous one.
    """
    return 16 if precision.scaled and not half_source and pitch >= _LONG else 64


def can_wait(plan: PackPlan, pitch: int, sm_count: int) -> bool:
    """Whether a panel's blocks run at once, so that they can find its magnitudes together."""
    return _RESIDENT_PANELS * plan.panel_blocks(pitch) <= plan.blocks_per_sm * sm_count


PACK_SOURCE: tuple[tuple[str, str], ...] = (
    ("const void*", "x"), ("void*", "planes"),
    ("uint32*", "row_absmax"), ("uint2*", "panel_counters"), ("float2*", "descale"),
    ("int64", "row_stride"), ("int64", "k_stride"), ("int64", "batch_stride"),
    *(("int", name) for name in ("rows", "k", "pitch", "exchange_absmax", "conjugate")),
)  # fmt: skip
"""Of one source, in order: PackArguments of gemm/pack_tile.cuh."""


def pack_arguments(sources: int) -> tuple[tuple[str, str], ...]:
    """The kernel's arguments: each source's, then how many blocks the first has."""
    each = [(kind, f"{name}_{i}") for i in range(sources) for kind, name in PACK_SOURCE]
    return (*each, ("int64", "first_blocks"))


def pack_kernel_name(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """The kernel's symbol."""
    return "_".join(["gemm_pack", precision.symbol, *(plan.symbol for plan in plans)])


def pack_source(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """The CUDA C++ of the kernel that packs one such source, or two at once."""
    constants = "".join(
        f"constexpr PackPlan kPlan{i}{{{_members(precision, plan)}}};\n"
        for i, plan in enumerate(plans)
    )
    blocks = min(plan.blocks_per_sm for plan in plans)
    sources = " ".join(f"PackArguments source_{i};" for i in range(len(plans)))
    second = (
        "    if (blockIdx.x >= args.first_blocks) {\n"
        "        pack_planes<kPlan1>(args.source_1, args.first_blocks, tile, row_absmax);\n"
        "        return;\n"
        "    }\n"
    )
    return (
        '#include "gemm/pack_kernel.cuh"\n'
        f"struct Arguments {{ {sources} int64 first_blocks; }};\n"
        f"{size_check('Arguments', pack_arguments(len(plans)))}"
        f"{constants}"
        f'extern "C" __global__ void __launch_bounds__({THREADS}, {blocks})\n'
        f"{pack_kernel_name(precision, plans)}(const __grid_constant__ Arguments args) {{\n"
        "    __shared__ float2 tile[kPackSharedElements];\n"
        "    __shared__ uint32 row_absmax[kMaxPackRows];\n"
        f"{second if len(plans) > 1 else ''}"
        "    pack_planes<kPlan0>(args.source_0, 0, tile, row_absmax);\n"
        "}\n"
    )


def _members(precision: Precision, plan: PackPlan) -> str:
    fields = precision_fields(precision) | {
        "scaled": str(scales(precision, plan)).lower(),
        "half_source": str(plan.half_source).lower(),
        "k_major": str(plan.k_major).lower(),
        "vector": plan.vector,
        "rows": plan.lines,
    }
    return ", ".join(f".{name} = {value}" for name, value in fields.items())


def pitch_of(k: int) -> int:
    """From line to line of an operand's planes."""
    return max(_PITCH, -(-k // _PITCH) * _PITCH)


def planes_bytes(precision: Precision, lines: int, k: int, batches: int) -> int:
    """What an operand takes in planes."""
    return batches * lines * pitch_of(k) * precision.planar_bytes


_ASIDE_DEPTH = 256
_ASIDE_WARPS = 3
"""As in gemm/sm90_fused_pack.cuh."""
_LEAD = 2
"""Chunks of 256 k that packing is ahead of loading in batches, at most a tile's."""


@dataclass(frozen=True)
class FusedPack:
    """How a column operand is packed while others multiply.

    Of ``panels`` (one for each column of tiles) those of a ``round`` are wanted by one turn of
    tiles; a warp packs ``lines`` lines by 256 k at once, at most ``lead`` such chunks of k before
    its block loads them. ``counters`` are 4 bytes each.
    """

    panels: int
    round: int
    lines: int
    lead: int
    counters: int


def plan_fused_pack(
    plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int
) -> FusedPack:
    """For ``batches`` column operands of ``columns`` lines, and a grid of ``blocks``.

    Small units where there would be too few for every warp.
    """
    chunks = -(-pitch_of(k) // _ASIDE_DEPTH)
    column_tiles = -(-columns // plan.block_n)
    panels = batches * column_tiles
    row_tiles = -(-rows // plan.block_m)
    group = tile_group(column_tiles)
    products = -(-blocks // (row_tiles * column_tiles))  # of one turn
    together = min(-(-blocks // min(row_tiles, group)), products * column_tiles)
    units = min(together, panels) * chunks * plan.block_n
    lines = 8
    while lines > 1 and units // lines < blocks * _ASIDE_WARPS:
        lines //= 2
    # The planes of one product stay for all of its turns: how early they come makes no difference.
    lead = chunks if batches == 1 else min(_LEAD, chunks)
    return FusedPack(panels, together, lines, lead, panels * chunks + 1)
