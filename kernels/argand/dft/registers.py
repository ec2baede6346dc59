"""Registers that a thread of each transform's kernel takes, and whether a plan leaves it as many.

Counted by hand for each kind of kernel. tests/kernels/dft/test_compile_dft.py compiles all of them:
none spills.
"""

from __future__ import annotations

from argand.device import HOPPER, Arch
from argand.dft.butterfly import ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.hankel import HankelPlan
from argand.dft.plan import DensePlan, Fp32Plan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.two_pass import TwoPassPlan
from argand.multiprocessor import LARGEST_REGISTERS, registers
from argand.precision import Precision
from argand.runtime.plan import PlanError


def check_registers(plan: Plan, precision: Precision, arch: Arch, blocks: int) -> None:
    """Raise PlanError where threads of ``blocks`` resident blocks have too few registers."""
    for threads, data, beside in _register_demands(plan, precision):
        have = registers(blocks * threads)
        if arch.sm < HOPPER:
            have -= 8  # threads copy in place of TMA
        elif arch.sm > HOPPER:
            have -= _newer_registers(plan)
        if data + beside > have:
            raise PlanError(
                f"{data} data registers per thread and {beside} "
                f"registers beside them are more than the {have} that {threads} threads have"
            )
    if isinstance(plan, HankelPlan) and precision.terms == 2 and not plan.cached_k_tiles(precision):
        raise PlanError(
            f"{plan.threads} threads with {data} accumulators have no registers for "
            "a k-tile's high-order terms, without which the compiler serialises MMAs"
        )


def _register_demands(plan: Plan, precision: Precision) -> list[tuple[int, int, int]]:
    """Return threads, a thread's data registers and those beside them, of each kernel that differs.

    The largest of three kernels stands for all of them.
    """
    if isinstance(plan, TwoPassPlan):
        data = plan.data_registers
        return [
            (plan.kernel_threads(role), data, plan.kernel_registers(role) - data)
            for role in plan.roles
        ]
    return [(plan.threads, plan.data_registers, other_registers(precision, plan))]


def other_registers(precision: Precision, plan: Plan) -> int:
    """Return a thread's registers beside its data. Tests compile all kernels: none spills."""
    if isinstance(plan, HankelPlan):
        return plan.other_registers(precision)
    if isinstance(plan, Fp32Plan):
        return plan.other_registers
    base, have = 32 + 40 * precision.terms, registers(plan.threads)
    found = base + 8 * (not plan.wide_copies) - 16 * (plan.data_registers <= 48)
    if isinstance(plan, TwoFactorPlan):
        if plan.m_tiles == 1 and precision.terms == 2 and plan.n2 > 24:
            found += 8 * (plan.buffers > 2)
        if plan.m_tiles == 1 and have == LARGEST_REGISTERS:
            return min(found + 40 * (plan.data_registers > 96), LARGEST_REGISTERS - 8 - 128)
        return found + 24 * (plan.m_tiles > 1) + 40 * (plan.data_registers > 96)
    if plan.folds_in_shared(precision):
        return found + 8 * (plan.data_registers > 96) + 24 * (plan.m_tiles > 1)
    many = plan.m_tiles > 1 and plan.data_registers > 96
    found += 8 * (plan.warps == 2)
    return found + 16 * (not plan.table_in_shared) + 24 * (plan.m_tiles > 1) + 32 * many


def _newer_registers(plan: Plan) -> int:
    """Return the further registers that a thread takes on targets newer than Hopper."""
    if isinstance(plan, ClusterPlan | SingleCtaPlan):
        return 0
    if isinstance(plan, DensePlan) and not plan.table_in_shared:
        return 32
    return 16 if isinstance(plan, ButterflyPlan) else 8
