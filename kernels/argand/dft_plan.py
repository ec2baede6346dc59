"""How transforms run on a GPU: plans, legality, the source to compile. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from argand.device import Arch
from argand.dft_method import LARGEST_FUSED
from argand.gemm_plan import PlanError
from argand.kernel_arguments import Fields, size_check
from argand.precision import FP16, Precision

WARP = 32
LARGEST_BLOCK = 1024
_ELEMENT = 8
ENGINE_SM = 90
"""From here on a copy engine takes tiles without gaps."""
WIDE_BYTES = 16
"""Of a wide copy, on which its addresses lie."""
_REGISTERS = 64 * 1024
LARGEST_REGISTERS = 255
LONGEST_CONVOLUTION = (90, 112, 8)
"""N1, N2 and warps of the one with sums of 112 registers that needs no more, in fp16."""
_NAMED_BARRIERS = 15

ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("const void*", "table"), ("const void*", "twiddles"),
    ("const void*", "turns"), ("const void*", "back_twiddles"), ("const void*", "back_turns"),
    ("const void*", "spectrum"), ("const void*", "chirp"),
    ("const void*", "takes"), ("const void*", "gives"),
    ("int64", "rows"), ("int64", "x_stride"), ("int64", "out_stride"),
    ("float", "factor"), ("float", "unit"), ("float", "sign"),
)  # fmt: skip
"""Members of ``DftArguments`` in ``cuda/dft_plan.cuh``."""


def padded(width: int) -> int:
    """Elements from line to line in shared memory; ``padded`` in ``cuda/dft_plan.cuh``."""
    return width if width % 2 else (width + 11) // 8 * 8 - 4


def _whole(elements: int) -> int:
    """Bytes of so many elements, on 128 bytes."""
    return -(-elements * _ELEMENT // 128) * 128


@dataclass(frozen=True)
class DensePlan:
    """Transforms of one length by one product each (``cuda/dft_dense.cuh``).

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
        """Whether warps that share a tile fold it together; ``together`` of ``Fold``."""
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
    """Transforms of length N1 N2 by two fused stages (``cuda/dft_product.cuh``).

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


@dataclass(frozen=True)
class ConvolutionPlan:
    """Transforms as convolutions of length N1 N2 (``cuda/dft_convolution.cuh``).

    Attributes:
        length: N.
        rader: by Rader, for a prime N1 N2 + 1; else by Bluestein.
        first, second, warps, rows, groups: as in `ProductPlan`.
        rows_back: as rows, of the transform back, whose first stage is that of N2.
    """

    kind: ClassVar[str] = "convolution"
    wide: ClassVar[bool] = False
    length: int
    rader: bool
    first: int
    second: int
    warps: int
    rows: int
    rows_back: int
    groups: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.warps * WARP

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block."""
        table = sum(folded_bytes(n, 1, precision) for n in {self.first, self.second})
        tile = max(
            _whole(self.first * padded(self.second)), _whole(self.second * padded(self.first))
        )
        return table + self.groups * (self.halves * tile + 8 + 4 * self.warps)

    @property
    def halves(self) -> int:
        """How many convolutions there are: two of which one is negacyclic, or one."""
        return 1 + (not self.rader and self.first * self.second < 2 * self.length - 1)

    @property
    def sums(self) -> int:
        """Registers a thread that hold sums, of the stage that has most."""
        there = folded_tiles(self.first, 1) * self.rows
        return 16 * max(there, folded_tiles(self.second, 1) * self.rows_back)

    @property
    def transforms(self) -> int:
        """That a block works on at a time."""
        return self.groups


Plan = DensePlan | ProductPlan | ConvolutionPlan


def folded_tiles(length: int, warps: int) -> int:
    """Eights of a table's columns that one of the warps has."""
    columns = length // 2
    return -(-columns // (8 * warps))


def depth(precision: Precision) -> int:
    """How many k one instruction contracts."""
    return 8 if precision.operand.name == "tf32" else 16


def folded_bytes(length: int, warps: int, precision: Precision) -> int:
    """Of a table as `Fold` in ``cuda/dft_plan.cuh`` has it."""
    slices = -(-(length // 2) // depth(precision))
    return slices * folded_tiles(length, warps) * warps * precision.terms * WARP * 16


def check_dft_plan(plan: Plan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a plan cannot run, with what was found and what is allowed."""
    if precision.exact_operands:
        raise PlanError(f"transforms at {precision.name} have no plan: a library computes them")
    for field in fields(plan):
        least = 2 if field.name in ("length", "first", "second") else 1
        value = getattr(plan, field.name)
        if not isinstance(value, bool) and value < least:
            raise PlanError(f"{field.name} must be at least {least}, got {value}")
    if plan.threads > LARGEST_BLOCK:
        raise PlanError(f"a block has at most {LARGEST_BLOCK} threads, got {plan.threads}")
    if plan.warps > 1 and plan.groups > _NAMED_BARRIERS:
        raise PlanError(f"groups of warps must be at most {_NAMED_BARRIERS}, got {plan.groups}")
    if plan.wide and plan.kind == "product" and plan.length % 2:
        raise PlanError(f"wide copies of products need an even length, got {plan.length}")
    if not isinstance(plan, DensePlan):
        _check_fused(plan)
    have = registers(plan.threads)
    if arch.sm < ENGINE_SM:
        have -= 8  # threads copy what the copy engine would
    if plan.sums + besides(precision, plan) > have:
        raise PlanError(
            f"{plan.sums} sums a thread and {besides(precision, plan)} registers beside them are "
            f"more than the {have} that {plan.threads} threads have"
        )
    if plan.shared_bytes(precision) > arch.shared_bytes:
        raise PlanError(
            f"shared memory of {plan.shared_bytes(precision)} bytes is more than the "
            f"{arch.shared_bytes} that a block has on {arch.target}"
        )


def _check_fused(plan: ProductPlan | ConvolutionPlan) -> None:
    if max(plan.first, plan.second) > LARGEST_FUSED:
        raise PlanError(f"factors must be at most {LARGEST_FUSED}, got {plan.first, plan.second}")
    stages = [(plan.rows, plan.second)]
    if isinstance(plan, ConvolutionPlan):
        stages.append((plan.rows_back, plan.first))
        size = plan.first * plan.second
        allowed = size == plan.length - 1 if plan.rader else size >= plan.length
        if not allowed:
            least = f"{plan.length - 1}" if plan.rader else f"at least {plan.length}"
            raise PlanError(f"the convolution's length must be {least}, got {size}")
    for rows, transforms in stages:
        if 16 * rows * plan.warps < transforms:
            raise PlanError(
                f"{plan.warps} warps with {rows} sixteens hold {16 * rows * plan.warps} of a first "
                f"stage's {transforms} transforms: they must hold all"
            )


def wide_fits(kind: str, length: int, stride: int) -> bool:
    """Whether rows whose first one begins on 16 bytes can be copied by 16 bytes.

    Sixteen dense ones go as one piece where they lie without gaps, also odd ones; with pads in
    shared memory (lengths of whole eights) and in products they go line by line.
    """
    if kind not in ("dense", "product"):
        return False
    if kind == "dense" and length % 8:
        return stride == length
    return length % 2 == 0 and stride % 2 == 0


def registers(threads: int) -> int:
    """A thread of a block of so many can have.

    Warps are dealt out to four schedulers, each with a quarter of a multiprocessor's.
    """
    warps = -(-threads // (4 * WARP))
    return min(LARGEST_REGISTERS, _REGISTERS // (4 * WARP * warps) // 8 * 8)


def besides(precision: Precision, plan: Plan) -> int:
    """Registers a thread beside its sums, with which no kernel spills (the tests compile all)."""
    base = 32 + 40 * precision.terms
    if isinstance(plan, ConvolutionPlan):
        longest = (plan.first, plan.second, plan.warps) == LONGEST_CONVOLUTION
        if longest and precision.operand is FP16:
            return base + 16
        return max(base, 96) + 32  # what is beside the products does not shrink with their terms
    found = base + 8 * (not plan.wide) - 16 * (plan.sums <= 48)
    if isinstance(plan, ProductPlan):
        return found + 24 * (plan.rows > 1) + 40 * (plan.sums > 96)
    if plan.together(precision):
        return found + 8 * (plan.sums > 96) + 24 * (plan.rows > 1)
    return found + 16 * (not plan.resident) + 24 * (plan.rows > 1)


def is_legal(plan: Plan, precision: Precision, arch: Arch) -> bool:
    """Whether `check_dft_plan` accepts a plan."""
    try:
        check_dft_plan(plan, precision, arch)
    except PlanError:
        return False
    return True


def kernel_name(plan: Plan, precision: Precision) -> str:
    """The kernel's symbol."""
    numbers = "_".join(str(int(getattr(plan, field.name))) for field in fields(plan))
    return f"dft_{plan.kind}_{precision.symbol}_{numbers}"


def dft_source(plan: Plan, precision: Precision) -> str:
    """The CUDA C++ of one kernel of the family."""
    members: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(plan)}
    if isinstance(plan, DensePlan):
        members["unrolled_tiles"] = plan.unrolled_tiles
    name = plan.kind.capitalize()
    return (
        f'#include "dft_{plan.kind}.cuh"\n'
        f"{size_check('DftArguments', ARGUMENTS)}"
        f"constexpr {name}Plan kPlan{{.products = {_products(precision)}, {_members(members)}}};\n"
        f"static_assert(kPlan.shared_bytes() == {plan.shared_bytes(precision)}, "
        '"as the plan counts it");\n'
        f'extern "C" __global__ void __launch_bounds__({plan.threads}, 1)\n'
        f"{kernel_name(plan, precision)}(const __grid_constant__ DftArguments args) {{\n"
        f"    dft_{plan.kind}<kPlan>(args);\n"
        "}\n"
    )


def _members(values: Mapping[str, Any]) -> str:
    return ", ".join(f".{name} = {_literal(value)}" for name, value in values.items())


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _products(precision: Precision) -> str:
    both = (*precision.roundings, precision.roundings[0])[:2]
    roundings = ", ".join(f"Rounding::{mode}" for mode in both)
    return (
        f"{{Operand::{precision.operand.name}, {precision.terms}, {{{roundings}}}, "
        f"{_literal(precision.scaled)}}}"
    )
