"""The choice of a transform's plan on a GPU. Needs no GPU.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from argand.device import Arch, arch_for
from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import (
    butterfly_cycles,
    butterfly_plans,
    butterfly_time,
)
from argand.dft.candidates import best_legal, convolved, fallbacks, ordered, timed_plans
from argand.dft.hankel import HankelPlan
from argand.dft.legality import TMA_SM, check_dft_plan
from argand.dft.library_choice import (
    LibraryKernels,
    library_is_faster,
    needs_library_kernels,
    own_time,
)
from argand.dft.method import Method, method_for
from argand.dft.plan import Fp32Plan, Plan, TwoFactorPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_factor_heuristics import two_factor_time
from argand.dft.two_pass import TwoPassPlan
from argand.precision import PRECISIONS, Precision
from argand.runtime.plan import is_legal, require_precision

_SLOWER_CYCLES = {True: 2.1, False: 2.6}
"""Cycles a number of a convolution, Rader's or not, that takes as long as a Hankel plan of two
terms whose tiles wait."""


@dataclass(frozen=True)
class Choice:
    """The plan of a transform on a GPU, and the reason as text.

    ``plan`` is None where cuFFT computes it. ``needs_library_kernels``: the kernels that cuFFT
    takes decide, not the length's factors.
    """

    plan: Plan | None
    why: str
    needs_library_kernels: bool = False

    def __str__(self) -> str:
        return f"cufft: {self.why}" if self.plan is None else f"{self.plan.kind}: {self.why}"


@lru_cache(maxsize=1024)
def choose(
    method: Method | None, precision: Precision, arch: Arch, *, wide: bool,
    library: LibraryKernels | None = None, memory: float = 1.0, full: bool = False,
) -> Choice:  # fmt: skip
    """Return the plan of a transform; ``wide``: its rows can be copied by 16 bytes.

    ``full``: they fill the GPU, without which no mixed radices are taken. ``library`` has cuFFT's
    kernels of the length, where they are known; ``memory`` is the card's `Device.relative_memory`.
    Raises PlanError for a precision that the architecture lacks.
    """
    require_precision(precision, arch)
    if method is None:
        return Choice(None, f"no kernel of ours: {precision.name} has no tensor-core products")
    if method.length == 1:
        return Choice(None, "nothing to compute: one number is its own transform")
    plan = own_plan(method, precision, arch, wide=wide, full=full)
    if plan is None:
        lacking = f"no plan fits {method} at {precision.name} on {arch.target}"
        return Choice(None, f"no kernel of ours: {lacking}")
    needs_kernels = library is None and needs_library_kernels(plan, precision)
    if (why := library_is_faster(plan, precision, library, memory)) is not None:
        return Choice(None, f"faster {why}", needs_kernels)
    if isinstance(plan, Fp32Plan):
        return Choice(plan, f"{plan.stages} in fp32", needs_kernels)
    what = f"{plan.n1} x {plan.n2}" if isinstance(plan, TwoFactorPlan) else f"{method}"
    return Choice(plan, f"{what} at {precision.name}", needs_kernels)


@lru_cache(maxsize=1024)
def butterflies_for(length: int) -> ButterflyPlan | ThreeKernelPlan | TwoPassPlan | None:
    """Return the plan in fp32 of a length on Hopper, which the CPU computes too.

    None where no convolution is a candidate.
    """
    method = method_for(length)
    if not convolved(method):
        return None
    plan = own_plan(method, PRECISIONS["3xfp16"], arch_for(TMA_SM), wide=False)
    return plan if isinstance(plan, ButterflyPlan | ThreeKernelPlan | TwoPassPlan) else None


def own_plan(
    method: Method, precision: Precision, arch: Arch, *, wide: bool, full: bool = False
) -> Plan | None:
    """Return the best candidate plan, arguments as in `choose`; None where none fits."""
    timed = [
        plan
        for plan in timed_plans(method.length)
        if is_legal(check_dft_plan, plan, precision, arch)
    ]
    other = _best_of_others(method, precision, arch, wide=wide, alone=not timed)
    fitting = [plan for plan in timed if full or isinstance(plan, TwoPassPlan)]
    best = min(fitting, key=lambda plan: own_time(plan, precision), default=None)
    if best is None or other is None:
        return best or other
    return best if own_time(best, precision) < own_time(other, precision) else other


def _best_of_others(
    method: Method, precision: Precision, arch: Arch, *, wide: bool, alone: bool
) -> Plan | None:
    """Return the best candidate except for two passes and mixed radices; None where there is none.

    ``alone``: no plan of those is legal.
    """
    found: list[Plan] = []
    for kinds, accepted in fallbacks(method, precision, wide=wide, alone=alone):
        every = [best_legal(plans, precision, arch, accepted) for plans in kinds]
        if found := ordered([plan for plan in every if plan], precision):
            break
    if found and isinstance(found[0], TwoFactorPlan):
        convolution = next((plan for plan in found if isinstance(plan, ButterflyPlan)), None)
        if convolution and butterfly_time(convolution) < two_factor_time(found[0], precision):
            return convolution
        return found[0]
    if found and isinstance(found[0], HankelPlan) and precision.terms > 1 and found[0].waits:
        return _convolution_instead(found[0], precision, arch) or found[0]
    return found[0] if found else None


def _convolution_instead(plan: HankelPlan, precision: Precision, arch: Arch) -> Plan | None:
    """Return the convolution of a prime, where it is faster than a Hankel plan whose tiles wait.

    It is faster where the plan has no wide copies, which leaves it fewer buffers.
    """
    best = best_legal(butterfly_plans(plan.length), precision, arch)
    if not isinstance(best, ButterflyPlan) or not plan.wide_copies:
        return best
    return best if butterfly_cycles(best) < _SLOWER_CYCLES[best.rader] * plan.length else None
