"""Candidate plans of a transform on a GPU, their rank, and the best legal one. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length, and cuFFT, on the card at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from argand.device import Arch
from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import (
    butterfly_order,
    butterfly_plans,
    group_counts,
    large_plans,
)
from argand.dft.cluster import ClusterPlan
from argand.dft.dense_heuristics import dense_order, dense_plans
from argand.dft.hankel import HankelPlan
from argand.dft.hankel_heuristics import hankel_order, hankel_plans
from argand.dft.legality import check_dft_plan
from argand.dft.library_choice import FAST_PRIME, OWN_KERNEL, own_time
from argand.dft.method import LARGEST_FACTOR, Method, prime_factors
from argand.dft.mixed_radix import MixedRadixPlan
from argand.dft.mixed_radix_heuristics import mixed_radix_plans
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.three_kernel_heuristics import three_kernel_cycles, three_kernel_plans
from argand.dft.two_factor_heuristics import two_factor_order, two_factor_plans
from argand.dft.two_pass import TwoPassPlan
from argand.dft.two_pass_heuristics import two_pass_plans
from argand.precision import Precision
from argand.runtime.plan import is_legal


def legal_butterflies(length: int, precision: Precision, arch: Arch) -> list[Plan]:
    """Return the butterfly plans of a length that an architecture takes."""
    return _legal(butterfly_plans(length), precision, arch)


def _legal(plans: Iterable[Plan], precision: Precision, arch: Arch) -> list[Plan]:
    found = (fullest_legal(plan, precision, arch) for plan in plans)
    return list(dict.fromkeys(plan for plan in found if plan))


def candidates(method: Method, precision: Precision, arch: Arch, *, wide: bool) -> list[Plan]:
    """Return the candidate plans of a method."""
    timed = _legal(timed_plans(method.length), precision, arch)
    for kinds, accepted in fallbacks(method, precision, wide=wide, alone=not timed):
        legal = _legal(chain(*kinds), precision, arch)
        if found := [plan for plan in legal if accepted(plan)]:
            return found + timed
    return timed


def fallbacks(
    method: Method, precision: Precision, *, wide: bool, alone: bool
) -> Iterator[tuple[list[list[Plan]], Callable[[Plan], bool]]]:
    """Yield plans by their kind, and which are accepted, in turn until one is legal and accepted.

    Two passes and mixed radices are not among them; ``alone`` says that none of those is legal.
    """
    kinds = [[*plans] for plans in kinds_of(method, precision, wide)]
    yield kinds, is_held
    if alone:
        yield kinds, lambda plan: True
        if method.kind == "dense":  # a prime that wgmma does not take
            yield [[*butterfly_plans(method.length)]], is_held


def kinds_of(method: Method, precision: Precision, wide: bool) -> Iterator[Iterable[Plan]]:
    """Yield the plans of each kind but two passes and mixed radices, legal or not."""
    length = method.length
    if method.kind == "dense":
        yield dense_plans(length, precision, wide)
        yield hankel_plans(length, wide)
    elif method.kind == "product" and all(part.kind == "dense" for part in method.parts):
        yield two_factor_plans(length, wide)
    if convolved(method):
        yield butterfly_plans(length)
        yield three_kernel_plans(length)
    elif _many_kernels(method):
        yield butterfly_plans(length)
    elif wide:
        yield large_plans(length)


def timed_plans(length: int) -> Iterator[MixedRadixPlan | TwoPassPlan]:
    """Return plans of mixed radices and of two passes, which are compared by times."""
    return chain(mixed_radix_plans(length), two_pass_plans(length))


def convolved(method: Method) -> bool:
    """Return whether convolutions in fp32 are candidates, perhaps beside plans on tensor cores."""
    awkward = method.kind == "product" and max(prime_factors(method.length)) > FAST_PRIME
    return awkward or method.kind in ("rader", "bluestein")


def _many_kernels(method: Method) -> bool:
    """Return whether cuFFT may have several kernels for a length that no two factors make."""
    if method.kind != "product" or all(part.kind == "dense" for part in method.parts):
        return False
    return prime_factors(method.length)[-1] >= OWN_KERNEL


def best_of_each_kind(plans: Iterable[Plan], most: int, precision: Precision) -> list[Plan]:
    """Return at most ``most`` plans of each kind, the best first."""
    kinds: dict[str, list[Plan]] = {}
    for plan in ordered(plans, precision):
        kinds.setdefault(plan.kind, []).append(plan)
    return [plan for some in kinds.values() for plan in some[:most]]


def ordered(plans: Iterable[Plan], precision: Precision) -> list[Plan]:
    """Return plans in their order, the best first."""
    return sorted(plans, key=lambda plan: plan_order(plan, precision))


def plan_order(plan: Plan, precision: Precision) -> tuple[float, ...]:
    """Return the sort key of plans, the best first: cycles of a convolution, ranks of the others.

    The key is fitted to measurements on an H200; it only has to rank.
    """
    if isinstance(plan, ButterflyPlan):
        return (butterfly_order(plan),)
    if isinstance(plan, ThreeKernelPlan):
        return (three_kernel_cycles(plan),)
    if isinstance(plan, TwoPassPlan | MixedRadixPlan):
        return (own_time(plan, precision),)
    if isinstance(plan, SingleCtaPlan | ClusterPlan):
        return (plan.warps, getattr(plan, "cluster_size", 1))
    if isinstance(plan, HankelPlan):
        return (plan.length <= LARGEST_FACTOR, *hankel_order(plan))
    if isinstance(plan, TwoFactorPlan):
        return two_factor_order(plan, precision)
    return dense_order(plan)


def best_legal(
    plans: Iterable[Plan], precision: Precision, arch: Arch,
    accepted: Callable[[Plan], bool] = lambda plan: True,
) -> Plan | None:  # fmt: skip
    """Return the best legal and ``accepted`` plan of a kind, the first of several as good.

    Plans are ranked first: to see whether all of them are legal takes most of a choice's time. None
    of fewer groups is estimated to be better.
    """
    ranked = sorted((plan_order(plan, precision), place, plan) for place, plan in enumerate(plans))
    found: tuple[tuple[float, ...], int, Plan] | None = None
    for best, place, plan in ranked:
        if found is not None and best > found[0]:
            break
        legal = fullest_legal(plan, precision, arch)
        if legal is not None and accepted(legal):
            one = plan_order(legal, precision), place, legal
            found = one if found is None else min(found, one)
    return None if found is None else found[2]


def fullest_legal(plan: Plan, precision: Precision, arch: Arch) -> Plan | None:
    """Return the legal plan of the most groups up to a plan's, which differs in nothing else.

    Among butterfly plans it is the one whose warps wait least (`group_counts`). Hankel plans'
    groups share the buffers, so that one of fewer is another candidate.
    """
    if not isinstance(plan, DensePlan | TwoFactorPlan | ButterflyPlan):
        return plan if is_legal(check_dft_plan, plan, precision, arch) else None
    counts = (
        group_counts(plan.warps, plan.groups)
        if isinstance(plan, ButterflyPlan)
        else range(plan.groups, 0, -1)
    )
    every = (replace(plan, groups=groups) for groups in counts)
    return next((one for one in every if is_legal(check_dft_plan, one, precision, arch)), None)


def is_held(plan: Plan) -> bool:
    """Return whether shared memory has room for two tiles beside tables; else those stay in L2."""
    return not isinstance(plan, DensePlan) or (plan.table_in_shared and plan.groups > 1)
