"""How transforms run on a GPU: plans, legality, the source to compile. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from argand.dft.butterfly import STAGES, ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.hankel import HankelPlan
from argand.dft.registers import WARP, registers
from argand.dft.single_cta import WholePlan
from argand.dft.three_kernel import PASSES, PassesPlan, passes_kernel_name, passes_source
from argand.precision import Precision
from argand.runtime.arguments import Fields, size_check
from argand.runtime.wgmma import wgmma_function

_ELEMENT = 8

ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("const void*", "table"), ("const void*", "twiddles"),
    ("const void*", "mirror_twiddles"), ("const void*", "spectrum"), ("const void*", "chirp"),
    ("const void*", "gather_offsets"), ("const void*", "scatter_offsets"),
    ("void*", "tile_counter"), ("int64", "rows"), ("int64", "x_stride"), ("int64", "out_stride"),
    ("float", "scale"), ("float", "alternate_scale"), ("float", "sign"), ("float", "bias_step"),
)  # fmt: skip
"""Members of ``DftArguments`` in ``cuda/dft/plan.cuh``."""


def padded(width: int) -> int:
    """Elements from line to line in shared memory; ``padded`` in ``cuda/dft/plan.cuh``."""
    return width if width % 2 else (width + 11) // 8 * 8 - 4


def _whole(elements: int) -> int:
    """Bytes of so many elements, on 128 bytes."""
    return -(-elements * _ELEMENT // 128) * 128


@dataclass(frozen=True)
class DensePlan:
    """Transforms of one length by one product each (``cuda/dft/dense.cuh``).

    Attributes:
        length: L.
        warps: that share the columns of a tile.
        rows: sixteens of transforms of a tile.
        groups: tiles that a block works on at a time.
        buffers: places of a tile in shared memory for each group: one is worked on, others are on
            their way.
        resident: the table is in shared memory; else it is read from the second-level cache.
        wide: tiles are copied 16 bytes at a time, by the copy engine where it can.
    """

    kind: ClassVar[str] = "dense"
    length: int
    warps: int
    rows: int
    groups: int
    buffers: int
    resident: bool
    wide: bool

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.warps * WARP

    @property
    def pitch(self) -> int:
        """Elements from row to row in shared memory."""
        return self.length + 4 * (self.length % 8 == 0)

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block."""
        table = folded_bytes(self.length, self.warps, precision) if self.resident else 0
        tile = _whole(16 * self.rows * self.pitch)
        board = 12 * 16 * self.rows * self.warps if self.together(precision) else 0
        return table + self.groups * (self.buffers * (tile + 8) + board)

    def together(self, precision: Precision) -> bool:
        """Whether warps that share a tile fold it together; ``FoldedTable::folds_in_shared``."""
        return self.warps > 2 and depth(precision) == 16

    @property
    def sums(self) -> int:
        """Registers a thread that hold sums."""
        return 16 * folded_tiles(self.length, self.warps) * self.rows

    @property
    def unrolled_tiles(self) -> int:
        """Eights of columns up to which there are registers to unroll the loop over k."""
        return (registers(self.threads) - 128) // 16

    @property
    def transforms(self) -> int:
        """That a block works on at a time."""
        return 16 * self.rows * self.groups


@dataclass(frozen=True)
class ProductPlan:
    """Transforms of length N1 N2 by two fused stages (``cuda/dft/two_factor.cuh``).

    Attributes:
        first, second: N1 and N2.
        warps: that share a transform.
        rows: sixteens of n2 that each of them holds in the first stage.
        groups: transforms that a block works on at a time.
        buffers, wide: as in `DensePlan`.
    """

    kind: ClassVar[str] = "product"
    first: int
    second: int
    warps: int
    rows: int
    groups: int
    buffers: int
    wide: bool

    @property
    def length(self) -> int:
        """N."""
        return self.first * self.second

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.warps * WARP

    def table_bytes(self, precision: Precision) -> int:
        """Of the folded tables."""
        return sum(folded_bytes(n, 1, precision) for n in {self.first, self.second})

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block."""
        tile = max(
            _whole(self.first * padded(self.second)), _whole(self.second * padded(self.first))
        )
        own = self.buffers * (tile + 8) + 4 * self.warps
        return self.table_bytes(precision) + self.groups * own

    @property
    def sums(self) -> int:
        """Registers a thread that hold sums, of the stage that has more."""
        return 16 * max(folded_tiles(self.first, 1) * self.rows, folded_tiles(self.second, 1))

    @property
    def transforms(self) -> int:
        """That a block works on at a time."""
        return self.groups


KernelPlan = DensePlan | HankelPlan | ProductPlan | ButterflyPlan | ClusterPlan | WholePlan
"""Of one kernel."""
Plan = KernelPlan | PassesPlan
_CUDA_KINDS: Mapping[str, str] = {"product": "two_factor", "whole": "single_cta"}
"""Kinds whose header, structure and function in ``cuda/dft`` have another name."""
_CUDA_MEMBERS: Mapping[str, str] = {
    "rows": "m_tiles", "resident": "table_in_shared", "wide": "wide_copies", "first": "n1",
    "second": "n2", "turns": "row_copies", "sharing": "warpgroups", "last": "last_radix",
    "cluster": "cluster_size", "blocks": "blocks_per_sm",
}  # fmt: skip
"""Attributes of plans whose members in the structures of ``cuda/dft`` have another name."""


def folded_tiles(length: int, warps: int) -> int:
    """Eights of a table's columns that one of the warps has."""
    columns = length // 2
    return -(-columns // (8 * warps))


def depth(precision: Precision) -> int:
    """How many k one instruction contracts."""
    return 8 if precision.operand.name == "tf32" else 16


def folded_bytes(length: int, warps: int, precision: Precision) -> int:
    """Of a table as `FoldedTable` in ``cuda/dft/plan.cuh`` has it."""
    slices = -(-(length // 2) // depth(precision))
    return slices * folded_tiles(length, warps) * warps * precision.terms * WARP * 16


def kernel_name(plan: KernelPlan, precision: Precision) -> str:
    """The kernel's symbol."""
    values = [getattr(plan, field.name) for field in fields(plan)]
    numbers = "_".join(
        "x".join(map(str, value)) if isinstance(value, tuple) else str(int(value))
        for value in values
    )
    return f"dft_{plan.kind}_{precision.symbol}_{numbers}"


def kernel_names(plan: Plan, precision: Precision) -> tuple[str, ...]:
    """The symbols of all kernels that a plan launches."""
    if isinstance(plan, PassesPlan):
        return tuple(passes_kernel_name(plan, which) for which in PASSES)
    return (kernel_name(plan, precision),)


def dft_source(plan: Plan, precision: Precision) -> str:
    """The CUDA C++ of one kernel of the family, or of the three of a plan in passes."""
    if isinstance(plan, PassesPlan):
        return passes_source(plan, precision)
    members: dict[str, Any] = {
        _CUDA_MEMBERS.get(field.name, field.name): getattr(plan, field.name)
        for field in fields(plan)
    }
    if isinstance(plan, DensePlan):
        members["max_unrolled_tiles"] = plan.unrolled_tiles
    kind = _CUDA_KINDS.get(plan.kind, plan.kind)
    structure = "".join(map(str.capitalize, kind.split("_"))) + "Plan"
    before = ""
    if isinstance(plan, HankelPlan):
        function = wgmma_function(precision.operand.name, plan.columns)
        before = f'#include "device/warpgroup.cuh"\n{function}'
        members["cached_k_tiles"] = plan.held(precision)
        members["promotion_k_tile"] = plan.aside(precision)
    bounds = f"__launch_bounds__({plan.threads}, 1)"
    if isinstance(plan, ButterflyPlan):
        members["radices"] = (*plan.radices, *(1,) * (STAGES - len(plan.radices)))
    elif isinstance(plan, WholePlan):
        pass
    elif isinstance(plan, ClusterPlan):
        bounds = f"__launch_bounds__({plan.threads}, {plan.blocks})"
        bounds += f" __cluster_dims__({plan.cluster}, 1, 1)"
    else:
        members = {"precision": _precision(precision), **members}
    return (
        f'{before}#include "dft/{kind}.cuh"\n'
        f"{size_check('DftArguments', ARGUMENTS)}"
        f"constexpr {structure} kPlan{{{_members(members)}}};\n"
        f"static_assert(kPlan.shared_bytes() == {plan.shared_bytes(precision)}, "
        '"as the plan counts it");\n'
        f'extern "C" __global__ void {bounds}\n'
        f"{kernel_name(plan, precision)}(const __grid_constant__ DftArguments args) {{\n"
        f"    dft_{kind}<kPlan>(args);\n"
        "}\n"
    )


def _members(values: Mapping[str, Any]) -> str:
    return ", ".join(f".{name} = {_literal(value)}" for name, value in values.items())


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{{{', '.join(map(str, value))}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _precision(precision: Precision) -> str:
    both = (*precision.roundings, precision.roundings[0])[:2]
    roundings = ", ".join(f"Rounding::{mode}" for mode in both)
    return (
        f"{{Operand::{precision.operand.name}, {precision.terms}, {{{roundings}}}, "
        f"{_literal(precision.scaled)}}}"
    )
