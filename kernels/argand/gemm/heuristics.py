"""Which kernel family and plan solve a product on a GPU, and in which roles its operands take part.

Nothing here needs a GPU or CuPy. A table measured on the device (`argand.gemm.tuned`) is asked
first; without an entry there, the candidate of the least estimated time is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from argand.device import Arch
from argand.gemm import memory as gemm_memory
from argand.gemm.families import Family
from argand.gemm.memory import OperandMemory
from argand.gemm.sm80_plan import MOST_SCANNED_K, GemmPlan
from argand.gemm.sm90_plan import Storage, WgmmaPlan, is_legal
from argand.gemm.sm90_scheduler import TileDivision, divide
from argand.gemm.sm90_tiles import in_planes, wgmma_tiles
from argand.precision import Precision
from argand.runtime.plan import TARGET, PlanError


@dataclass(frozen=True)
class OperandTraits:
    """What the choice needs to know of an operand.

    ``copyable`` says that the copy engine can read it where it lies, ``k_major`` that k is its
    contiguous axis, ``half`` that it holds pairs of 16 bits in the precision's format, ``packed``
    that it is in planes already, ``batched`` that each product has its own, ``conjugated`` that it
    has yet to be conjugated, ``copied`` that beside its planes there is a copy for mma.sync.
    """

    copyable: bool = True
    k_major: bool = True
    half: bool = False
    packed: bool = False
    batched: bool = True
    conjugated: bool = False
    copied: bool = False

    def readable(self, beside: OperandTraits) -> bool:
        """Whether it can be a row operand where it lies, next to this column operand.

        conj(X) Y is found as conj(X conj(Y)), which wants Y not packed yet.
        """
        return self.copyable and not self.packed and not (self.conjugated and beside.packed)

    @property
    def fusable(self) -> bool:
        """Whether the kernel that multiplies can pack it on the way, as a column operand."""
        return self.copyable and self.k_major and not self.packed and not self.half


@dataclass(frozen=True)
class GemmSizes:
    """The sizes of a product and whether the result is pairs of 16 bits."""

    batch: int
    m: int
    n: int
    k: int
    half_output: bool = False


@dataclass(frozen=True)
class GemmChoice:
    """A way to solve a product.

    ``plan`` is that of the wgmma family; None leaves the product to the mma.sync family, which
    finds its own unless ``tile`` says which. ``swapped`` computes C^T = B^T A^T, so that B is the
    row operand. k is cut into ``split_k_slices``.
    """

    plan: WgmmaPlan | None = None
    swapped: bool = False
    split_k_slices: int = 1
    tile: GemmPlan | None = None

    @property
    def family(self) -> Family:
        """Of the kernel that multiplies."""
        return "mma.sync" if self.plan is None else "wgmma"

    @property
    def name(self) -> str:
        """In words, for tables of choices; `gemm.names` says what became of it in a launch."""
        if self.plan is None:
            return "mma.sync" + (f" {self.tile.name}" if self.tile else "")
        order = "B^T A^T" if self.swapped else "A B"
        cut = f", k in {self.split_k_slices} parts" if self.split_k_slices > 1 else ""
        aside = ", packed aside" if self.plan.fused_pack else ""
        return f"wgmma {self.plan.name()} {self.plan.storage}, {order}{cut}{aside}"


def candidates(
    precision: Precision, arch: Arch, sizes: GemmSizes, a: OperandTraits, b: OperandTraits
) -> list[GemmChoice]:
    """Every way to solve a product.

    mma.sync takes any that has neither planes alone nor pairs, which would have to be widened.
    """
    planes = any(x.packed and not x.copied for x in (a, b))
    beyond = planes or a.half or b.half or sizes.half_output
    found = [] if beyond else [GemmChoice()]
    if arch.target != TARGET or min(sizes.m, sizes.n, sizes.k) == 0:
        return found
    for swapped in (False, True):
        rows, columns = (b, a) if swapped else (a, b)
        for storage in _storages(precision, rows, columns):
            for plan in wgmma_tiles(precision, storage):
                plan = replace(
                    plan, k_major=storage != "planar" and rows.k_major,
                    half_output=sizes.half_output, prescaled=precision.scaled and a.half and b.half,
                )  # fmt: skip
                # A pass that packs rows packs columns as well.
                fusable = columns.fusable and (rows.packed or storage != "planar")
                for fused in (False, True)[: 1 + fusable]:
                    one = replace(plan, fused_pack=fused)
                    if is_legal(one, precision, arch):
                        found += [GemmChoice(one, swapped, n) for n in _slice_counts(one, sizes)]
    return [
        x for x in found
        if x.split_k_slices == 1
        or _slices_bytes(x, sizes) <= partials_capacity(x, precision, sizes, a, b)
    ]  # fmt: skip


def partials_capacity(
    choice: GemmChoice, precision: Precision, sizes: GemmSizes, a: OperandTraits, b: OperandTraits
) -> int:
    """Return the bytes that a choice of the wgmma family may take besides its planes."""
    assert choice.plan is not None
    planar = choice.plan.storage == "planar"  # Y is in planes with every storage of X
    memories = (
        OperandMemory.of(
            precision, rows, sizes.k, sizes.batch if x.batched else 1, half=x.half, packed=x.packed
        )
        for rows, x in ((sizes.m, a), (sizes.n, b))
    )
    return gemm_memory.partials_capacity(
        *memories, packs_a=planar or choice.swapped, packs_b=planar or not choice.swapped
    )


def _slices_bytes(choice: GemmChoice, sizes: GemmSizes) -> int:
    """Return the bytes of the results of all split-K slices."""
    return 8 * choice.split_k_slices * sizes.batch * sizes.m * sizes.n


def _storages(precision: Precision, rows: OperandTraits, columns: OperandTraits) -> list[Storage]:
    """How the row operand can be read: where it lies if it can be, and from planes."""
    if not rows.readable(columns):
        return ["planar"]
    if rows.half:
        return ["half", "planar"]
    return ["planar"] if precision.scaled else ["fp32", "planar"]


_MIN_SLICE_K = 512
"""Shortest split-K slice, in elements of k: prologue and reduction outweigh a shorter one."""


def _slice_counts(plan: WgmmaPlan, sizes: GemmSizes) -> Sequence[int]:
    """Return 1, and powers of two that cut a long k of few tiles into slices.

    16-bit results are rounded once, from the sum over all of k, so theirs is not cut.
    """
    found = [1]
    tiles = sizes.batch * -(-sizes.m // plan.block_m) * -(-sizes.n // plan.block_n)
    while (
        not sizes.half_output and 2 * found[-1] * tiles <= 264
        and sizes.k // (2 * found[-1]) >= _MIN_SLICE_K
    ):  # fmt: skip
        found.append(2 * found[-1])
    return found


def choose(
    precision: Precision,
    arch: Arch,
    cores: int,
    sizes: GemmSizes,
    a: OperandTraits,
    b: OperandTraits,
    family: Family | None = None,
) -> GemmChoice:
    """The candidate of the least estimated time, of a family where one is asked for.

    Raises PlanError where there is none.
    """
    every = [x for x in candidates(precision, arch, sizes, a, b) if family in (None, x.family)]
    if not every:
        raise PlanError(
            f"no {family or 'kernel'} for {precision.name} on {arch.name} with packed operands, "
            f"pairs of 16 bits or 16-bit results: those need wgmma on {TARGET}; mma.sync takes "
            "complex64 and gives it, on every card"
        )
    return min(every, key=lambda choice: estimate(choice, precision, cores, sizes, a, b))


def adapted(
    choice: GemmChoice, precision: Precision, a: OperandTraits, b: OperandTraits
) -> GemmChoice:
    """The choice, with what operands of these traits do not allow packed beforehand."""
    if choice.plan is None:
        return choice
    rows, columns = (b, a) if choice.swapped else (a, b)
    readable = rows.readable(columns) and rows.half == (choice.plan.storage == "half")
    plan = choice.plan if readable else in_planes(choice.plan, precision)
    contiguous = plan.storage != "planar" and rows.k_major
    read = plan.storage == "fp32" or rows.packed
    packs = plan.fused_pack and read and columns.fusable
    return replace(choice, plan=replace(plan, k_major=contiguous, fused_pack=packs))


# What an H200 was seen to do: docs/performance.md. They only have to rank the candidates.
_CLOCK = 1.7e9
_MULTIPLY_ADDS = {4: 1024, 2: 2048}
"""Real multiply-adds a multiprocessor's tensor cores do in a clock, by bytes of the operand."""
_MEMORY = 4.0e12
_PACKING = 3.2e12
_SCANNING = 1.5e12
_STORE = 24e9
"""Bytes a second that a multiprocessor's epilogue stores."""
_BEHIND = 0.75
"""Of what a store takes, that is left where the next tile's products begin meanwhile."""
_LAUNCH = 4e-6
_FILL = 1.5e-6
"""Until a kernel's first tile is under way."""
_ASIDE = 12e-6
"""Until the first planes that are packed on the way lie there."""
_STREAM_K_REDUCTION = 8e-6
"""Seconds to store and reduce partial tiles."""
_SHARE = {(2, 128): 0.90, (2, 96): 0.86, (2, 64): 0.76, (2, 32): 0.5, (1, 64): 0.52, (1, 32): 0.35}
"""Of the tensor cores' rate that a tile reaches, by warpgroups and columns."""
_EXPOSED = 0.1
"""Of the shorter of products and traffic, which does not disappear behind the longer."""
_SPLITTING = 1.1
"""What splitting in registers costs, every column tile anew, over a packed row operand."""
_MMA_STEP = {4: 0.5e-6, 2: 0.34e-6}
"""What a block of the mma.sync family takes for 32 x 32 of C by 32 k, by bytes of the operand, with
one product; with three it is twice that."""
_LOOKING = 1.5e-6
"""For magnitudes of lines of 256, in each block of that family."""


def estimate(
    choice: GemmChoice,
    precision: Precision,
    cores: int,
    sizes: GemmSizes,
    a: OperandTraits,
    b: OperandTraits,
) -> float:
    """Seconds that a choice would take, to rank it by."""
    m, n, k, batch = sizes.m, sizes.n, sizes.k, sizes.batch
    moved = 8 * batch * (m * k + k * n + m * n) / _MEMORY
    products = 4 * len(precision.products)
    each = _MULTIPLY_ADDS[precision.operand.bytes] * _CLOCK
    plan = choice.plan
    if plan is None:
        waves = -(-(batch * -(-m // 32) * -(-n // 32)) // cores)
        step = _MMA_STEP[precision.operand.bytes] * (1 + len(precision.products)) / 2
        spent = waves * -(-k // 32) * step
        scans = 0.0
        if precision.scaled and k > MOST_SCANNED_K:
            scans = 1.5 * _LAUNCH + 8 * batch * k * (m + n) / _SCANNING
        elif precision.scaled:
            scans = waves * k / 256 * _LOOKING
        spent, moved = spent + _FILL, 1.3 * moved
        return max(spent, moved) + _EXPOSED * min(spent, moved) + _LAUNCH + scans
    rows, columns = (n, m) if choice.swapped else (m, n)
    row_traits, column_traits = (b, a) if choice.swapped else (a, b)
    items = rows * plan.x_item(precision) + columns * precision.planar_bytes
    moved = batch * (items * k + (4 if sizes.half_output else 8) * m * n) / _MEMORY
    packing = 0.0
    for lines, traits, packs in (
        (columns, column_traits, not plan.fused_pack), (rows, row_traits, plan.storage == "planar"),
    ):  # fmt: skip
        if packs and not traits.packed:
            item = (4 if traits.half else 8) + precision.planar_bytes
            copies = batch if traits.batched else 1
            packing += max(1e-6, copies * lines * k * item / _PACKING)
    total = _LAUNCH + _FILL + packing + (_LAUNCH if packing else 0.0)  # one launch for both
    total += _ASIDE if plan.fused_pack else 0.0
    tiles = batch * choice.split_k_slices * -(-rows // plan.block_m) * -(-columns // plan.block_n)
    stages = -(-k // (plan.depth * choice.split_k_slices))
    steps = stages * plan.depth
    rate = each * _SHARE[plan.consumer_warpgroups, plan.block_n]
    one = plan.block_m * plan.block_n * steps * products / rate
    if plan.storage == "fp32" and precision.terms > 1:
        one *= _SPLITTING
    behind = _BEHIND if tiles > cores and plan.can_overlap_epilogue(precision) else 1.0
    one += behind * plan.block_m * plan.block_n * 8 / _STORE
    if choice.split_k_slices > 1:
        total += 2 * _LAUNCH + 8 * batch * m * n * (choice.split_k_slices + 1) / _PACKING
    division = TileDivision(min(tiles, cores), tiles)
    if choice.split_k_slices == 1:
        # Partial tiles of a last wave lie over planes where memory of their own is short.
        capacity = partials_capacity(choice, precision, sizes, a, b) // (
            8 * plan.block_m * plan.block_n
        )
        division = divide(tiles, cores, stages, plan.depth, capacity if tiles < cores else None)
    if division.stream_k_tiles:
        total += _STREAM_K_REDUCTION
    spent = division.waves(stages) * one
    return total + max(spent, moved) + _EXPOSED * min(spent, moved)
