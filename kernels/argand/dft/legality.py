"""What a plan of transforms may be: memory, registers, sizes. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import fields

from argand.device import Arch
from argand.dft.butterfly import (
    LARGEST_RADIX,
    LARGEST_SIZE,
    LARGEST_TURNS,
    STAGES,
    ButterflyPlan,
)
from argand.dft.cluster import LARGEST_CLUSTER, LARGEST_STAGE, ClusterPlan
from argand.dft.hankel import LARGEST_COLUMNS, TURNS, HankelPlan
from argand.dft.method import LARGEST_FUSED, is_prime
from argand.dft.plan import Plan, ProductPlan
from argand.dft.registers import LARGEST_REGISTERS, registers
from argand.dft.single_cta import WholePlan
from argand.dft.three_kernel import LARGEST_LINE, PassesPlan
from argand.precision import Precision
from argand.runtime.plan import TARGET, PlanError

ENGINE_SM = 90
"""From here on a copy engine takes tiles without gaps."""
WIDE_BYTES = 16
"""Of a wide copy, on which its addresses lie."""
LARGEST_BLOCK = 1024
_RESERVED = 1024
"""Bytes of shared memory that the device takes for each block."""
_NAMED_BARRIERS = 15


def check_dft_plan(plan: Plan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a plan cannot run, with what was found and what is allowed."""
    if precision.exact_operands:
        raise PlanError(f"transforms at {precision.name} have no plan: a library computes them")
    for field in fields(plan):
        least = 2 if field.name in ("length", "first", "second") else 1
        value = getattr(plan, field.name)
        if isinstance(value, int) and not isinstance(value, bool) and value < least:
            raise PlanError(f"{field.name} must be at least {least}, got {value}")
    if plan.threads > LARGEST_BLOCK:
        raise PlanError(f"a block has at most {LARGEST_BLOCK} threads, got {plan.threads}")
    if plan.warps > 1 and plan.groups > _NAMED_BARRIERS:
        raise PlanError(f"groups of warps must be at most {_NAMED_BARRIERS}, got {plan.groups}")
    if plan.wide and plan.kind == "product" and plan.length % 2:
        raise PlanError(f"wide copies of products need an even length, got {plan.length}")
    if isinstance(plan, HankelPlan):
        _check_hankel(plan, precision, arch)
    elif isinstance(plan, ButterflyPlan):
        _check_butterfly(plan)
    elif isinstance(plan, WholePlan):
        _check_whole(plan, arch)
    elif isinstance(plan, ClusterPlan):
        _check_cluster(plan, arch)
    elif isinstance(plan, ProductPlan):
        _check_product(plan)
    elif isinstance(plan, PassesPlan):
        _check_passes(plan)
    blocks = plan.blocks if isinstance(plan, ClusterPlan) else 1
    have = registers(blocks * plan.threads)
    if arch.sm < ENGINE_SM:
        have -= 8  # threads copy what the copy engine would
    if plan.sums + besides(precision, plan) > have:
        raise PlanError(
            f"{plan.sums} sums a thread and {besides(precision, plan)} registers beside them are "
            f"more than the {have} that {plan.threads} threads have"
        )
    if isinstance(plan, HankelPlan) and precision.terms == 2 and not plan.held(precision):
        raise PlanError(
            f"{plan.threads} threads with {plan.sums} sums have no registers for a slice's first "
            "terms, without which the compiler has products wait for each other"
        )
    if blocks * (plan.shared_bytes(precision) + _RESERVED) - _RESERVED > arch.shared_bytes:
        raise PlanError(
            f"shared memory of {plan.shared_bytes(precision)} bytes for each of {blocks} is more "
            f"than the {arch.shared_bytes} that a block has on {arch.target}"
        )


def _check_hankel(plan: HankelPlan, precision: Precision, arch: Arch) -> None:
    if arch.target != TARGET or precision.operand.bytes != 2:
        raise PlanError(
            f"wgmma needs {TARGET} and 16-bit operands, got {arch.target}, {precision.name}"
        )
    if not is_prime(plan.length) or plan.length == 2:
        raise PlanError(f"Hankel matrices need an odd prime, got {plan.length}")
    if plan.turns not in TURNS:
        raise PlanError(f"turns must be one of {list(TURNS)}, got {plan.turns}")
    if plan.buffers < plan.groups or (plan.buffers % plan.groups and not plan.wide):
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
    if not plan.rader and plan.first_turns > LARGEST_TURNS:
        raise PlanError(
            f"a thread has at most {LARGEST_TURNS} butterflies of the first stage, got "
            f"{plan.first_turns}"
        )
    if int(plan.place(plan.size)) > LARGEST_SIZE:
        raise PlanError(f"places must be below {LARGEST_SIZE}, got {plan.size} numbers")


def _check_whole(plan: WholePlan, arch: Arch) -> None:
    if arch.sm < ENGINE_SM:
        raise PlanError(
            f"a copy engine brings the next one from sm_{ENGINE_SM} on, not {arch.target}"
        )
    if plan.radix & (plan.radix - 1) or plan.last & (plan.last - 1):
        raise PlanError(f"radices must be powers of two, got {plan.radix, plan.last}")
    if plan.radix > LARGEST_STAGE or plan.radix % plan.last or plan.threads % 32:
        raise PlanError(
            f"a radix of at most {LARGEST_STAGE}, a multiple of the last one, and whole warps are "
            f"needed, got {plan.radix, plan.last}"
        )


def _check_cluster(plan: ClusterPlan, arch: Arch) -> None:
    if arch.sm < ENGINE_SM:
        raise PlanError(f"clusters need sm_{ENGINE_SM}, got {arch.target}")
    if plan.cluster & (plan.cluster - 1) or not 2 <= plan.cluster <= LARGEST_CLUSTER:
        raise PlanError(
            f"the cluster must be a power of two from 2 to {LARGEST_CLUSTER}, got {plan.cluster}"
        )
    if any(r & (r - 1) or not 2 <= r <= LARGEST_STAGE for r in plan.radices):
        raise PlanError(
            f"radices must be powers of two from 2 to {LARGEST_STAGE}, got {plan.radices}"
        )
    first, _, _, last = plan.radices
    columns, lines = plan.second // plan.cluster, plan.first // plan.cluster
    shared_out = all(plan.threads % n == 0 for n in (columns, lines, last))
    held = plan.length // plan.cluster // plan.threads
    if not shared_out or columns < 2 or lines % first or any(held % r for r in plan.radices):
        raise PlanError(
            f"{plan.threads} threads must have whole butterflies of one column and of one line of "
            f"{plan.radices} in {plan.cluster} blocks"
        )


def _check_product(plan: ProductPlan) -> None:
    if max(plan.first, plan.second) > LARGEST_FUSED:
        raise PlanError(f"factors must be at most {LARGEST_FUSED}, got {plan.first, plan.second}")
    held = 16 * plan.rows * plan.warps
    if held < plan.second:
        raise PlanError(
            f"{plan.warps} warps with {plan.rows} sixteens hold {held} of a first stage's "
            f"{plan.second} transforms: they must hold all"
        )


def _check_passes(plan: PassesPlan) -> None:
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


def wide_fits(kind: str, length: int, stride: int) -> bool:
    """Whether rows whose first one begins on 16 bytes can be copied by 16 bytes.

    Sixteen dense ones go as one piece where they lie without gaps, also odd ones; with pads in
    shared memory (lengths of whole eights) and in products they go line by line.
    """
    if kind not in ("dense", "hankel", "product", "cluster", "whole"):
        return False
    if kind == "hankel" or (kind == "dense" and length % 8):
        return stride == length
    return length % 2 == 0 and stride % 2 == 0


def besides(precision: Precision, plan: Plan) -> int:
    """Registers a thread beside its sums, with which no kernel spills (the tests compile all)."""
    if isinstance(plan, HankelPlan):
        return plan.besides(precision)
    if isinstance(plan, ButterflyPlan | ClusterPlan | WholePlan | PassesPlan):
        return plan.besides
    base, have = 32 + 40 * precision.terms, registers(plan.threads)
    found = base + 8 * (not plan.wide) - 16 * (plan.sums <= 48)
    if isinstance(plan, ProductPlan):
        if plan.rows == 1 and have == LARGEST_REGISTERS:
            return min(found + 40 * (plan.sums > 96), LARGEST_REGISTERS - 8 - 128)
        return found + 24 * (plan.rows > 1) + 40 * (plan.sums > 96)
    if plan.together(precision):
        return found + 8 * (plan.sums > 96) + 24 * (plan.rows > 1)
    many = plan.rows > 1 and plan.sums > 96
    found += 8 * (plan.warps == 2)
    return found + 16 * (not plan.resident) + 24 * (plan.rows > 1) + 32 * many


def is_legal(plan: Plan, precision: Precision, arch: Arch) -> bool:
    """Whether `check_dft_plan` accepts a plan."""
    try:
        check_dft_plan(plan, precision, arch)
    except PlanError:
        return False
    return True
