"""Packing for the wgmma family: plan, blocks and source of the pack kernel; fused packing.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argand.gemm.precision_fields import precision_fields
from argand.gemm.sm90_plan import WgmmaPlan
from argand.gemm.sm90_scheduler import raster_group_m
from argand.precision import Precision
from argand.runtime.arguments import size_check
from argand.runtime.kernel_entry import kernel_entry, symbol_words

THREADS, TILE = 256, 4096
"""Threads of a block, and most complex numbers of the tile that it packs (gemm/pack_tile.cuh)."""
_PITCH = 16
"""Planes are padded to a multiple of this many k."""
_RESIDENT_PANELS = 4
"""Panels whose blocks are resident at once where they wait for each other."""
_ROWS, _FEW_ROWS = 64, 16
"""Rows of a panel, and of one whose rows are scaled where k takes more than one tile."""
_FILLED_K = 1024
"""The least k at which panels that are not full take no longer than others."""
ALONE_K = TILE // _FEW_ROWS
"""Largest k, up to a multiple of 16, of which one block packs whole rows and finds their absmax."""


@dataclass(frozen=True)
class PackPlan:
    """A plan of the pack kernel for one source.

    ``half_source`` says that it holds pairs of 16 bits, ``k_major`` that k is its contiguous axis,
    ``vector`` how many complex numbers one read takes (2 needs them aligned). A block packs a tile
    of ``elements``, ``rows`` by `tile_k` k; the blocks of the same rows are a panel.
    ``exchanges_k`` has k = 2 i and 2 i + 1 change places in every second matrix, as beside an X of
    odd batches. The blocks of a panel are a ``cluster``, or wait for each other where there is 1 in
    it.
    """

    half_source: bool = False
    k_major: bool = True
    vector: int = 1
    rows: int = 64
    exchanges_k: bool = False
    cluster: int = 1
    elements: int = TILE

    @property
    def blocks_per_sm(self) -> int:
        """Resident blocks, limited by 37 KB of shared memory and 48 or 64 registers a thread."""
        return 5 if self.rows < 64 else 4

    @property
    def loads_whole_lines(self) -> bool:
        """Whether the threads load whole lines of a tile, and a warp k of one row where it is."""
        return not self.k_major or 32 <= self.tile_k // self.vector <= THREADS

    @property
    def tile_k(self) -> int:
        """Elements of k that a block packs."""
        return self.elements // self.rows

    def panels(self, rows: int, batches: int) -> int:
        """Return how many panels ``batches`` matrices of ``rows`` rows have."""
        return batches * -(-rows // self.rows)

    def panel_blocks(self, pitch: int) -> int:
        """Return how many blocks a panel has."""
        return self.cluster if self.cluster > 1 else -(-pitch // self.tile_k)


def scales(precision: Precision, plan: PackPlan) -> bool:
    """Return whether rows are scaled: 16-bit sources are in the operand format already."""
    return precision.scaled and not plan.half_source


def panel_rows(precision: Precision, half_source: bool, pitch: int) -> int:
    """Return the rows of a panel: few where its blocks wait for each other and k is long.

    Fewer blocks then wait, of a k that one block holds none. Elsewhere a tile has as many rows as
    k, so that either axis may be the contiguous one.
    """
    return _FEW_ROWS if precision.scaled and not half_source and pitch > _ROWS else _ROWS


def panel_fill(precision: Precision, rows: int, k: int) -> float:
    """Return the factor of packing a matrix whose last panel is not full: the blocks wait as long.

    It is the rows of its panels over its own, and 1 where one block has all of k or k is long (14
    drawn triangles on an H200).
    """
    panel = panel_rows(precision, half_source=False, pitch=k)
    waits = panel == _ROWS or ALONE_K < k < _FILLED_K
    return -(-rows // panel) * panel / rows if waits else 1.0


def scaled_blocks(precision: Precision, rows: int, k: int) -> int:
    """Return the blocks that pack a matrix of so many rows of k, which are scaled."""
    pitch = pitch_of(k)
    plan = PackPlan(rows=panel_rows(precision, half_source=False, pitch=pitch))
    return plan.panels(rows, 1) * -(-pitch // plan.tile_k)


def panels_resident(plan: PackPlan, pitch: int, sm_count: int) -> bool:
    """Return whether a panel's blocks are resident at once: then they exchange the row absmax."""
    return _RESIDENT_PANELS * plan.panel_blocks(pitch) <= plan.blocks_per_sm * sm_count


PACK_SOURCE: tuple[tuple[str, str], ...] = (
    ("const void*", "x"), ("void*", "planes"),
    ("uint32*", "row_absmax"), ("uint2*", "panel_counters"), ("float2*", "descale"),
    ("int64", "row_stride"), ("int64", "k_stride"), ("int64", "batch_stride"),
    *(("int", name) for name in ("rows", "k", "pitch", "exchange_absmax", "conjugate")),
)  # fmt: skip
"""Arguments of one source, in order: PackArguments of gemm/pack_tile.cuh."""


def pack_arguments(sources: int) -> tuple[tuple[str, str], ...]:
    """Return the kernel's arguments: each source's, then how many blocks the first has."""
    each = [(kind, f"{name}_{i}") for i in range(sources) for kind, name in PACK_SOURCE]
    return (*each, ("int64", "first_blocks"))


def pack_kernel_name(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """Return the kernel's symbol, in which the words of each source's plan follow ``of``."""
    words = [word for plan in plans for word in ("of", *symbol_words(plan))]
    return "_".join(["gemm_pack", precision.symbol, *words])


def pack_source(precision: Precision, plans: Sequence[PackPlan]) -> str:
    """Return the CUDA C++ of the kernel that packs one source or two."""
    constants = "".join(
        f"constexpr PackPlan kPlan{i}{{{_members(precision, plan)}}};\n"
        for i, plan in enumerate(plans)
    )
    blocks = min(plan.blocks_per_sm for plan in plans)
    shared = " > ".join(f"kPlan{i}.shared_elements()" for i in range(len(plans)))
    if len(plans) > 1:
        shared += " ? kPlan0.shared_elements() : kPlan1.shared_elements()"
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
        + kernel_entry(
            pack_kernel_name(precision, plans),
            "Arguments",
            f"__shared__ float2 tile[{shared}];\n"
            "    __shared__ uint32 row_absmax[kMaxPackRows];\n"
            f"{second if len(plans) > 1 else ''}"
            "    pack_planes<kPlan0>(args.source_0, 0, tile, row_absmax);",
            THREADS,
            blocks,
            cluster=plans[0].cluster,
        )
    )


def _members(precision: Precision, plan: PackPlan) -> str:
    fields = precision_fields(precision) | {
        "scaled": str(scales(precision, plan)).lower(),
        "half_source": str(plan.half_source).lower(),
        "k_major": str(plan.k_major).lower(),
        "vector": plan.vector,
        "rows": plan.rows,
    }
    fields |= {"exchanges_k": "true"} if plan.exchanges_k else {}
    fields |= {"cluster": plan.cluster} if plan.cluster > 1 else {}
    fields |= {"elements": plan.elements} if plan.elements != TILE else {}
    return ", ".join(f".{name} = {value}" for name, value in fields.items())


def pitch_of(k: int) -> int:
    """Return the elements of k from row to row of an operand's planes."""
    return max(_PITCH, -(-k // _PITCH) * _PITCH)


def planes_bytes(precision: Precision, rows: int, k: int, batches: int) -> int:
    """Return the bytes of ``batches`` matrices of rows by k in planes."""
    return batches * rows * pitch_of(k) * precision.planar_bytes


_FUSED_PACK_K = 256
_FUSED_PACK_WARPS = 3
"""Warps of a block that pack: kPackWarps of gemm/sm90_fused_pack.cuh."""
_MAXIMUM_LEAD = 2
"""Most k-blocks of 256 k by which packing of a batch leads the loads, at most those of a tile."""


@dataclass(frozen=True)
class FusedPack:
    """A plan by which idle warps pack the column operand while the consumers multiply.

    A wave reads ``panels_per_wave`` of the ``panels``, one for each column of tiles. A warp packs
    ``rows`` by 256 k at once, at most ``maximum_lead`` such k-blocks before its own block loads
    them. ``counters`` take 4 bytes each.
    """

    panels: int
    panels_per_wave: int
    rows: int
    maximum_lead: int
    counters: int


def plan_fused_pack(
    plan: WgmmaPlan, rows: int, columns: int, k: int, batches: int, blocks: int
) -> FusedPack:
    """Plan the packing of ``batches`` column operands of ``columns`` rows, for a grid of blocks.

    Warps pack fewer rows at once where there would not be work for each of them.
    """
    k_blocks = -(-pitch_of(k) // _FUSED_PACK_K)
    column_tiles = -(-columns // plan.block_n)
    panels = batches * column_tiles
    row_tiles = -(-rows // plan.block_m)
    group = raster_group_m(column_tiles)
    products = -(-blocks // (row_tiles * column_tiles))  # of one wave
    panels_per_wave = min(-(-blocks // min(row_tiles, group)), products * column_tiles)
    row_blocks = min(panels_per_wave, panels) * k_blocks * plan.block_n
    pack_rows = 8
    while pack_rows > 1 and row_blocks // pack_rows < blocks * _FUSED_PACK_WARPS:
        pack_rows //= 2
    # All waves of a single product read the same planes, so packing may lead without limit.
    lead = k_blocks if batches == 1 else min(_MAXIMUM_LEAD, k_blocks)
    return FusedPack(panels, panels_per_wave, pack_rows, lead, panels * k_blocks + 1)
