"""The epilogue of the wgmma family that a call needs, by its result and its scalars."""

from __future__ import annotations

from dataclasses import replace

from argand.device import Arch
from argand.gemm.sm90.legality import check_wgmma_plan
from argand.gemm.sm90.plan import WIDEST_IN_PLACE, Epilogue, WgmmaPlan
from argand.gemm.sm90.problem import WgmmaProblem
from argand.gemm.tma_layout import tma_addressable
from argand.precision import Precision
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.launch.tensor_map import ALIGNMENT
from argand.runtime.plan import is_legal


def with_tma_epilogue(plan: WgmmaPlan, precision: Precision, out: Layout, arch: Arch) -> WgmmaPlan:
    """Return the plan with a TMA epilogue where TMA can address the result and store it alone.

    TMA stores whole 16 bytes: of a line that ends within them it would write what lies beyond.
    """
    if plan.half_output or plan.power or not tma_addressable(out):
        return plan
    by_tma = replace(plan, tma_epilogue=True, out_m_major=not is_k_major(out))
    if (out.rows if by_tma.out_m_major else out.columns) * out.item % ALIGNMENT:
        return plan
    # Illegal where shared memory does not suffice, or where tiles are narrower than a box.
    return by_tma if is_legal(check_wgmma_plan, by_tma, precision, arch) else plan


def with_epilogue(plan: WgmmaPlan, problem: WgmmaProblem, out: Layout) -> WgmmaPlan:
    """Return the plan with the epilogue that the call needs and no more code than that."""
    epilogue = epilogue_of(plan, problem, out)
    contiguous = out.column_stride == 1 and not plan.out_m_major
    # Beside a C, and while MMAs are in flight, no registers are left for mirror images.
    free = epilogue != "combine" and not plan.overlapped_stages
    mirror = problem.mirror and contiguous and free and problem.split_k_slices == 1
    return replace(plan, epilogue=epilogue, mirror=mirror)


def epilogue_of(plan: WgmmaPlan, problem: WgmmaProblem, out: Layout) -> Epilogue:
    """Return the epilogue that a problem's kernel has."""
    if plan.overlapped_stages:  # a real alpha is applied beforehand
        return "descale"
    if problem.alpha != 1 or problem.beta != 0:
        return "combine"
    if plan.tma_epilogue:
        return "descale"
    if out.column_stride == 1:
        whole = out.in_pairs(along_columns=True)
        return "descale_rows" if whole else "descale_shifted_rows"
    if out.row_stride == 1 and plan.adjacent_rows:
        return "descale_columns"
    # To descale alone at any strides spills there (`sm90.legality`).
    wide = plan.storage == "fp32" and plan.block_n == WIDEST_IN_PLACE
    return "combine" if plan.power or wide else "descale"
