"""Legality of plans of a softmax: what can be compiled and launched. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import replace

from argand.device import Arch
from argand.multiprocessor import (
    CLUSTER_SM,
    LARGEST_BLOCK,
    LARGEST_CLUSTER,
    REGISTERS,
    RESIDENT_THREADS,
    SHARED_BYTES,
    WARP,
    WARPGROUP,
)
from argand.precision import HALF_FORMATS
from argand.runtime.plan import PlanError, require_precision
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import (
    MAX_EPILOGUE_STAGES,
    MAX_LOAD_STAGES,
    STATIC_BYTES,
    RowPlan,
    SoftmaxForm,
    ring_block,
    ring_bytes,
    ring_grain,
    ring_line,
    row_line,
    vector_for,
)

MAX_SLAB_STAGES = 4
_MAX_RING_WORDS = 64
_MAX_SPLIT_RING_WORDS = {False: 24, True: 20}
"""Words of values that are rounded to two terms: ptxas keeps them beside those that are not yet,
and for approximate exponentials (True) their maximum in both forms."""
_FEW_OTHERS_VALUES = 22
"""Values from which on a thread of whole complex accesses has fewer registers beside them."""
_MORE_OTHERS_VALUES = {"log_softmax": (50,), "logsumexp": (34, 50, 52)}
"""Numbers of values beside which logarithms of complex rows need more registers: in 80 or 96
registers ptxas spills 3 to 15 of them, and none beside 36 or 48 values or, in more registers, from
54 on."""


def check_softmax_plan(plan: RowPlan, form: SoftmaxForm, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    require_precision(form.precision, arch)
    threads = plan.row_threads
    if threads < 1 or (threads % WARP if threads > WARP else WARP % threads):
        raise PlanError(f"row_threads must divide 32 or be a multiple of it, got {threads}")
    least = WARP if plan.ring else max(WARP, threads)
    if plan.block_threads % least or plan.block_threads > LARGEST_BLOCK:
        raise PlanError(
            f"block_threads must be a multiple of 32 and of row_threads up to 1024, "
            f"got {plan.block_threads}"
        )
    if plan.ring:
        _check_ring(plan, form, arch)
    elif threads > WARP and plan.block_threads != threads:
        raise PlanError("threads of several warps that share a row must be the block")
    if plan.slab:
        _check_slab(plan, form, arch)
    elif plan.values % form.vector or plan.values < 2:
        raise PlanError(
            f"values must be a multiple of the vector of {form.vector} and at least 2, "
            f"got {plan.values}"
        )
    if plan.cluster > 1 and (arch.sm < CLUSTER_SM or threads <= WARP):
        raise PlanError(f"clusters need sm_90 and rows of a block, got {plan.cluster}")
    if not plan.ring and (plan.cluster & (plan.cluster - 1) or plan.cluster > LARGEST_CLUSTER):
        raise PlanError(f"cluster must be a power of two up to 16, got {plan.cluster}")
    if not plan.resident and threads <= WARP:
        raise PlanError("rows that are not held whole must have a block's threads")
    if plan.staged:
        _check_staged(plan, form, arch)
    registers = value_registers(form, plan) + _other_registers(form, plan)
    if registers * plan.block_threads * plan.blocks > REGISTERS:
        raise PlanError(
            f"{plan.blocks} blocks of {plan.block_threads} threads with {plan.values} values take "
            f"more than {REGISTERS} registers"
        )


def _check_ring(plan: RowPlan, form: SoftmaxForm, arch: Arch) -> None:
    if arch.sm < CLUSTER_SM:
        raise PlanError("a ring needs TMA, which sm_90 has first")
    if form.compute_fp64 or not (form.half or form.input in ("fp32", "complex64")):
        raise PlanError("a ring takes fp32, complex64, and fp16 and bf16 as they are, in fp32")
    if form.vector != vector_for(form.input, form.written):
        raise PlanError(f"a ring needs full accesses, got {form.vector} values")
    write_threads = plan.block_threads - ring_block(plan.row_threads, 0, plan.cluster)
    if write_threads < WARP or write_threads % WARP or plan.row_threads % write_threads:
        raise PlanError(
            f"a ring has 2 or 3 warps, {plan.row_threads} reduce threads, and write threads that "
            f"divide those in number, got {plan.block_threads} threads in all"
        )
    if not plan.resident or plan.staged:
        raise PlanError("a ring must be resident, and copies by TMA in place of cp.async")
    split = _MAX_SPLIT_RING_WORDS[form.approximate]
    most = _MAX_RING_WORDS if _has_one_term(form) else split
    if value_registers(form, plan) > most:
        raise PlanError(f"reduce threads of a ring hold at most {most} registers of values")
    if plan.slice_columns > plan.row_threads * plan.values or plan.slice_columns % ring_line(form):
        raise PlanError(
            f"a slice must be a multiple of {ring_line(form)} columns that the reduce "
            f"threads hold, got {plan.slice_columns}"
        )
    if (
        not 2 <= plan.load_stages <= MAX_LOAD_STAGES
        or not 1 <= plan.epilogue_stages <= MAX_EPILOGUE_STAGES
    ):
        raise PlanError(
            f"a ring has 2 to {MAX_LOAD_STAGES} load stages and 1 to "
            f"{MAX_EPILOGUE_STAGES} epilogue stages, "
            f"got {plan.load_stages} and {plan.epilogue_stages}"
        )
    if plan.shared_bytes(form) > ring_bytes(arch, plan.blocks):
        raise PlanError(
            f"{plan.load_stages} + {plan.epilogue_stages} slices take "
            f"{plan.shared_bytes(form)} bytes, more than a block has"
        )


def check_row(plan: RowPlan, form: SoftmaxForm, columns: int) -> None:
    """Raise PlanError for rows that do not fit, or that leave whole accesses beyond their end."""
    least, line = 0, row_line(form, plan.row_threads) if form.unaligned_rows else 1
    held = plan.row_threads * plan.cluster * plan.values
    if plan.slab:
        # Only a lane's last value may lie beyond the row.
        least, line, held = held - plan.row_threads + 1, 1, plan.row_threads * plan.values
    elif plan.ring:
        line = ring_line(form) if form.unaligned_rows or ring_grain(form) != form.vector else 1
        held = plan.slice_columns * plan.cluster
    else:
        # The kernel tests for the end of a row in the last two accesses only.
        least = held - 2 * plan.row_threads * plan.cluster * form.vector
    most = held - (line - 1)
    if plan.resident and not least <= columns <= most:
        raise PlanError(f"{plan} holds rows of {least} to {most} columns, got {columns}")


def _check_slab(plan: RowPlan, form: SoftmaxForm, arch: Arch) -> None:
    if not plan.resident or plan.staged or plan.ring or plan.cluster > 1:
        raise PlanError("slabs have resident rows of a block or less")
    if not form.gapless:
        raise PlanError("slabs are rows without gaps between them")
    if plan.values < 1 or not 2 <= plan.slab_stages <= MAX_SLAB_STAGES:
        raise PlanError(
            f"slabs have a value a thread at least and 2 to {MAX_SLAB_STAGES} stages, "
            f"got {plan.values} and {plan.slab_stages}"
        )
    if plan.bulk and arch.sm < CLUSTER_SM:
        raise PlanError("bulk copies need TMA, which sm_90 has first")
    if plan.shared_bytes(form) + STATIC_BYTES > arch.shared_bytes:
        raise PlanError(f"slabs take {plan.shared_bytes(form)} bytes, more than a block has")


def _check_staged(plan: RowPlan, form: SoftmaxForm, arch: Arch) -> None:
    if not plan.resident or plan.cluster == 1:
        raise PlanError("staged rows must be resident and shared by a cluster")
    access = form.vector * ELEMENT_BYTES[form.input]
    if access not in (8, 16):
        raise PlanError(f"an asynchronous copy must have 8 or 16 bytes, got {access}")
    if plan.shared_bytes(form) + STATIC_BYTES > arch.shared_bytes:
        raise PlanError(
            f"{plan.block_threads} threads with {plan.values} values stage "
            f"{plan.shared_bytes(form)} bytes, more than a block has"
        )


def value_registers(form: SoftmaxForm, plan: RowPlan) -> int:
    """Return the registers of a thread's values."""
    if plan.packed(form):
        return plan.values // 2
    return plan.values * max(4, form.value_bytes) // 4


def _has_one_term(form: SoftmaxForm) -> bool:
    """Return whether values are held as they are, or rounded to one number for `ex2.approx`."""
    row = form.precision
    return row.exact_operands or (form.approximate and row.terms == 1)


def _other_registers(form: SoftmaxForm, plan: RowPlan) -> int:
    """Return a thread's registers beside its values. Tests compile all kernels: none spills."""
    if plan.ring:
        if form.packed:
            return 44 if form.output in HALF_FORMATS else 58
        return 42 if _has_one_term(form) else 54
    exact = form.precision.exact_operands and form.operation == "softmax"
    if form.compute_fp64:
        found = 64
    elif (exact or (form.approximate and _has_one_term(form))) and ELEMENT_BYTES[form.input] <= 4:
        found = (28 if plan.row_threads >= WARP else 32) + (0 if form.unit_scale else 8)
        if form.half and not plan.packed(form) and not plan.slab:
            found += 4 if plan.row_threads > WARP else 12
    elif _has_few_others(form, plan):
        found = 36
    else:
        found = 44
    if _has_more_others(form, plan):
        found += 4
    if plan.slab:
        found = max(40, found)
    if plan.staged:
        return found + (12 if form.precision.exact_operands else 44)
    return found if plan.resident else found + 28


def _has_few_others(form: SoftmaxForm, plan: RowPlan) -> bool:
    """Return whether a thread has enough complex values that it needs few registers beside them.

    With fewer it is the accesses in flight that take registers, not what comes after them.
    """
    exact = form.precision.exact_operands and form.unit_scale and form.operation == "softmax"
    aligned = form.input == "complex64" and not form.unaligned_rows
    held = plan.resident and not plan.staged and plan.row_threads > WARP
    return exact and aligned and held and plan.values >= _FEW_OTHERS_VALUES


def _has_more_others(form: SoftmaxForm, plan: RowPlan) -> bool:
    """Return whether a thread of complex values needs more registers beside them than others."""
    held = plan.resident and not plan.ring and form.input == "complex64"
    return held and plan.values in _MORE_OTHERS_VALUES.get(form.operation, ())


def limited(form: SoftmaxForm, plan: RowPlan) -> RowPlan:
    """Return the plan with the most blocks per multiprocessor that registers and memory allow."""
    words = value_registers(form, plan)
    registers = max(32, -(-(words + _other_registers(form, plan)) // 8) * 8)
    # Each of the four schedulers has a quarter of the warps and of the registers.
    warps = 4 * (REGISTERS // (WARPGROUP * registers))
    blocks = max(
        1,
        min(
            RESIDENT_THREADS // plan.block_threads,
            warps // (plan.block_threads // WARP),
            SHARED_BYTES // (plan.shared_bytes(form) + STATIC_BYTES),
        ),
    )
    return plan if blocks == plan.blocks else replace(plan, blocks=blocks)
