"""Legality of plans of transforms: memory, registers, sizes. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from math import prod

from argand.device import Arch
from argand.dft.butterfly import (
    LARGEST_FIRST_BUTTERFLIES,
    LARGEST_RADIX,
    LARGEST_SIZE,
    STAGES,
    ButterflyPlan,
)
from argand.dft.cluster import LARGEST_STAGE, ClusterPlan
from argand.dft.hankel import LARGEST_COLUMNS, ROW_COPIES, HankelPlan
from argand.dft.method import LARGEST_FUSED, is_prime
from argand.dft.mixed_radix import LARGEST_MIXED_RADIX, MIXED_STAGES, MixedRadixPlan
from argand.dft.plan import Plan, TwoFactorPlan
from argand.dft.registers import check_registers
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import LARGEST_LINE, ThreeKernelPlan
from argand.dft.two_pass import (
    LARGEST_BUTTERFLY,
    LARGEST_SHARED_PRIME,
    TILE_WIDTHS,
    TwoPassPlan,
    pairs_of,
)
from argand.multiprocessor import LARGEST_BLOCK, PORTABLE_CLUSTER
from argand.precision import Precision
from argand.runtime.plan import WGMMA_TARGET, PlanError, require_precision

TMA_SM = 90
"""The first architecture whose TMA copies tiles without gaps."""
WIDE_BYTES = 16
"""Bytes of a wide copy, and alignment of its addresses."""
_NAMED_BARRIERS = 15
"""Named barriers for groups of warps: of 16 the first is that of __syncthreads."""


def check_dft_plan(plan: Plan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a plan cannot run, with what was found and what is allowed."""
    require_precision(precision, arch)
    if precision.exact_operands:
        raise PlanError(f"transforms at {precision.name} have no plan: a library computes them")
    for name, least in _least_sizes(type(plan)):  # type: ignore[arg-type]
        if getattr(plan, name) < least:
            raise PlanError(f"{name} must be at least {least}, got {getattr(plan, name)}")
    if plan.threads > LARGEST_BLOCK:
        raise PlanError(f"a block has at most {LARGEST_BLOCK} threads, got {plan.threads}")
    if plan.warps > 1 and plan.groups > _NAMED_BARRIERS:
        raise PlanError(f"groups of warps must be at most {_NAMED_BARRIERS}, got {plan.groups}")
    if plan.wide_copies and plan.kind == "two_factor" and plan.length % 2:
        raise PlanError(f"wide copies of products need an even length, got {plan.length}")
    _check_kind(plan, precision, arch)
    blocks = plan.blocks_per_sm if isinstance(plan, ClusterPlan) else 1
    check_registers(plan, precision, arch, blocks)
    if blocks > arch.resident_blocks(plan.shared_bytes(precision)):
        raise PlanError(
            f"shared memory of {plan.shared_bytes(precision)} bytes for each of {blocks} is more "
            f"than the {arch.shared_bytes} that a block has on {arch.target}"
        )


def _check_kind(plan: Plan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a plan breaks a rule of its own kind of kernel."""
    if isinstance(plan, HankelPlan):
        _check_hankel(plan, precision, arch)
    elif isinstance(plan, ButterflyPlan):
        _check_butterfly(plan)
    elif isinstance(plan, MixedRadixPlan):
        _check_mixed_radix(plan)
    elif isinstance(plan, SingleCtaPlan):
        _check_single_cta(plan, arch)
    elif isinstance(plan, ClusterPlan):
        _check_cluster(plan, arch)
    elif isinstance(plan, TwoFactorPlan):
        _check_two_factor(plan)
    elif isinstance(plan, ThreeKernelPlan):
        _check_three_kernel(plan)
    elif isinstance(plan, TwoPassPlan):
        _check_two_pass(plan)


@cache
def _least_sizes(kind: type) -> list[tuple[str, int]]:
    """Return the fields of a kind of plan that are one number, and the least that each may be."""
    names = [field.name for field in fields(kind) if field.type in ("int", int)]
    return [(name, 2 if name in ("length", "n1", "n2") else 1) for name in names]


def _check_hankel(plan: HankelPlan, precision: Precision, arch: Arch) -> None:
    if arch.target != WGMMA_TARGET or precision.operand.bytes != 2:
        raise PlanError(
            f"wgmma needs {WGMMA_TARGET} and 16-bit operands, got {arch.target}, {precision.name}"
        )
    if not is_prime(plan.length) or plan.length == 2:
        raise PlanError(f"Hankel matrices need an odd prime, got {plan.length}")
    if plan.row_copies not in ROW_COPIES:
        raise PlanError(f"row_copies must be one of {list(ROW_COPIES)}, got {plan.row_copies}")
    if plan.buffers < plan.groups or (plan.buffers % plan.groups and not plan.wide_copies):
        raise PlanError(
            f"{plan.groups} groups need as many buffers each, or more and wide copies, got "
            f"{plan.buffers} in all"
        )
    if plan.columns > LARGEST_COLUMNS:
        raise PlanError(f"a warpgroup has at most {LARGEST_COLUMNS} columns, got {plan.columns}")


def _check_butterfly(plan: ButterflyPlan) -> None:
    wrong = [radix for radix in plan.radices if not 2 <= radix <= LARGEST_RADIX]
    if wrong or not 2 <= len(plan.radices) <= STAGES:
        raise PlanError(
            f"radices must be 2 to {STAGES} numbers from 2 to {LARGEST_RADIX}, got {plan.radices}"
        )
    if plan.rader and (plan.size != plan.length - 1 or not is_prime(plan.length)):
        raise PlanError(f"Rader's convolution of a prime {plan.length} has not {plan.size} numbers")
    if not plan.rader and plan.size < 2 * plan.length - 1:
        raise PlanError(f"the convolution's length must be at least {2 * plan.length - 1}")
    if not plan.rader and plan.first_butterflies > LARGEST_FIRST_BUTTERFLIES:
        raise PlanError(
            f"a thread has at most {LARGEST_FIRST_BUTTERFLIES} butterflies of the first stage, got "
            f"{plan.first_butterflies}"
        )
    if plan.place(plan.size) > LARGEST_SIZE:
        raise PlanError(f"offsets must be below {LARGEST_SIZE}, got {plan.size} numbers")


def _check_mixed_radix(plan: MixedRadixPlan) -> None:
    wrong = [radix for radix in plan.radices if not 2 <= radix <= LARGEST_MIXED_RADIX]
    if wrong or not 2 <= len(plan.radices) <= MIXED_STAGES:
        raise PlanError(
            f"radices must be 2 to {MIXED_STAGES} numbers from 2 to {LARGEST_MIXED_RADIX}, got "
            f"{plan.radices}"
        )


def _check_single_cta(plan: SingleCtaPlan, arch: Arch) -> None:
    if arch.sm < TMA_SM:
        raise PlanError(f"single-CTA plans need TMA, from sm_{TMA_SM} on, got {arch.target}")
    if plan.radix & (plan.radix - 1) or plan.last_radix & (plan.last_radix - 1):
        raise PlanError(f"radices must be powers of two, got {plan.radix, plan.last_radix}")
    if plan.radix > LARGEST_STAGE or plan.radix % plan.last_radix or plan.threads % 32:
        raise PlanError(
            f"a radix of at most {LARGEST_STAGE}, a multiple of the last one, and whole warps are "
            f"needed, got {plan.radix, plan.last_radix}"
        )


def _check_cluster(plan: ClusterPlan, arch: Arch) -> None:
    if arch.sm < TMA_SM:
        raise PlanError(f"clusters need sm_{TMA_SM}, got {arch.target}")
    if (
        plan.cluster_size & (plan.cluster_size - 1)
        or not 2 <= plan.cluster_size <= PORTABLE_CLUSTER
    ):
        raise PlanError(
            f"the cluster must be a power of two from 2 to {PORTABLE_CLUSTER}, "
            f"got {plan.cluster_size}"
        )
    if any(r & (r - 1) or not 2 <= r <= LARGEST_STAGE for r in plan.radices):
        raise PlanError(
            f"radices must be powers of two from 2 to {LARGEST_STAGE}, got {plan.radices}"
        )
    first, _, _, last = plan.radices
    columns, lines = plan.n2 // plan.cluster_size, plan.n1 // plan.cluster_size
    shared_out = all(plan.threads % n == 0 for n in (columns, lines, last))
    held = plan.length // plan.cluster_size // plan.threads
    if not shared_out or columns < 2 or lines % first or any(held % r for r in plan.radices):
        raise PlanError(
            f"{plan.threads} threads must have whole butterflies of one column and of one line of "
            f"{plan.radices} in {plan.cluster_size} blocks"
        )


def _check_two_factor(plan: TwoFactorPlan) -> None:
    if max(plan.n1, plan.n2) > LARGEST_FUSED:
        raise PlanError(f"factors must be at most {LARGEST_FUSED}, got {plan.n1, plan.n2}")
    held = 16 * plan.m_tiles * plan.warps
    if held < plan.n2:
        raise PlanError(
            f"{plan.warps} warps with {plan.m_tiles} m-tiles hold {held} of a first stage's "
            f"{plan.n2} transforms: they must hold all"
        )


def _check_three_kernel(plan: ThreeKernelPlan) -> None:
    line, width = plan.line, plan.width
    wrong = [radix for radix in (*plan.columns, *plan.radices) if not 2 <= radix <= LARGEST_RADIX]
    if wrong or not 2 <= len(plan.radices) <= STAGES:
        raise PlanError(
            f"radices must be two of columns and 2 to {STAGES} of lines from 2 to {LARGEST_RADIX}, "
            f"got {plan.columns} and {plan.radices}"
        )
    if plan.size < 2 * plan.length - 1:
        raise PlanError(f"the convolution's length must be at least {2 * plan.length - 1}")
    if line.size > LARGEST_LINE or line.size % width or 32 * plan.tile_warps % width:
        raise PlanError(
            f"lines of at most {LARGEST_LINE} numbers, and whole tiles and threads of {width} "
            f"columns are needed, got lines of {line.size} and {32 * plan.tile_warps} threads"
        )


def _check_two_pass(plan: TwoPassPlan) -> None:
    if prod(plan.columns) * prod(plan.lines) != plan.length:
        raise PlanError(
            f"columns of {plan.columns} and lines of {plan.lines} are not {plan.length}"
        )
    for first, last in (plan.columns, plan.lines):
        most = LARGEST_SHARED_PRIME if pairs_of(last) else LARGEST_BUTTERFLY
        if not 1 <= first <= LARGEST_BUTTERFLY or not 2 <= last <= most:
            raise PlanError(
                f"a first radix is at most {LARGEST_BUTTERFLY}, and a last one too or a prime "
                f"up to {LARGEST_SHARED_PRIME}, got {first, last}"
            )
    if any(width not in TILE_WIDTHS for width in plan.widths) or min(plan.block_warps) < 1:
        raise PlanError(
            f"tiles of {list(TILE_WIDTHS)} columns and whole warps are needed, got {plan.widths} "
            f"and {plan.block_warps}"
        )


def wide_fits(kind: str, length: int, stride: int) -> bool:
    """Return whether rows whose first one begins on 16 bytes can be copied by 16 bytes.

    ``kind`` is that of a method or of a plan. Without padding in shared memory sixteen dense rows
    are one copy, of any length, where they have no gaps. Padded rows (multiples of eight) and those
    of two factors are copied line by line.
    """
    if kind not in ("dense", "hankel", "product", "two_factor", "cluster", "single_cta"):
        return False
    if kind == "hankel" or (kind == "dense" and length % 8):
        return stride == length
    return length % 2 == 0 and stride % 2 == 0
