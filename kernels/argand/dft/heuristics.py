"""The choice of a transform's plan on a GPU; the candidate plans. Needs no GPU.

``python -m benchmarks.dft.plans`` times the candidates of a length, and cuFFT, on the card at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, islice

from argand.device import Arch, Device, arch_for
from argand.dft.butterfly import ButterflyPlan
from argand.dft.butterfly_heuristics import (
    butterfly_cycles,
    butterfly_order,
    butterfly_plans,
    butterfly_time,
    large_plans,
    short_plan,
)
from argand.dft.cluster import ClusterPlan
from argand.dft.dense_heuristics import dense_order, dense_plans
from argand.dft.hankel import HankelPlan
from argand.dft.hankel_heuristics import hankel_order, hankel_plans
from argand.dft.legality import TMA_SM, is_legal
from argand.dft.library_choice import (
    FAST_PRIME,
    OWN_KERNEL,
    LibraryKernels,
    asks,
    library_is_faster,
    own_time,
)
from argand.dft.method import LARGEST_FACTOR, Method, method_for, prime_factors
from argand.dft.mixed_radix import MixedRadixPlan
from argand.dft.mixed_radix_heuristics import mixed_radix_plans
from argand.dft.plan import DensePlan, Fp32Plan, Plan, TwoFactorPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.three_kernel_heuristics import three_kernel_cycles, three_kernel_plans
from argand.dft.two_factor_heuristics import two_factor_order, two_factor_plans, two_factor_time
from argand.dft.two_pass import TwoPassPlan
from argand.dft.two_pass_heuristics import two_pass_plans
from argand.precision import PRECISIONS, Precision
from argand.runtime.plan import require_precision

_SLOWER_CYCLES = {True: 2.1, False: 2.6}
"""By whether it is Rader's, cycles a number of a convolution that takes as long as a Hankel plan of
two terms whose tiles wait: 0.37 of the copy rate on an H200 (521, 577, 641, 719 and 761)."""
FEW_NUMBERS = 4096
"""Numbers a multiprocessor below which cuFFT transforms dense lengths and primes: blocks of ours
hold a table for many rows. It lies between drawn problems on an H200 where cuFFT was faster and
larger ones where ours was (`python -m argand tune dft` times both)."""
SHORT = range(41, 1025)
"""Lengths of which few rows are convolutions of least latency, where a prime factor is above
`FAST_PRIME`. Up to 132 rows they take 0.33 to 1 of cuFFT's time on an H200, up to 1.05 at 528."""


@dataclass(frozen=True)
class Choice:
    """The plan of a transform on a GPU, and the reason as text.

    ``plan`` is None where cuFFT computes it; ``asks`` is whether its kernels decide, not factors.
    """

    plan: Plan | None
    why: str
    asks: bool = False

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
    ask = library is None and asks(plan, precision)
    if (why := library_is_faster(plan, precision, library, memory)) is not None:
        return Choice(None, f"faster {why}", ask)
    if isinstance(plan, Fp32Plan):
        return Choice(plan, f"{plan.stages} in fp32", ask)
    what = f"{plan.n1} x {plan.n2}" if isinstance(plan, TwoFactorPlan) else f"{method}"
    return Choice(plan, f"{what} at {precision.name}", ask)


@lru_cache(maxsize=1024)
def butterflies_for(length: int) -> ButterflyPlan | ThreeKernelPlan | TwoPassPlan | None:
    """Return the plan in fp32 of a length on Hopper, which the CPU computes too.

    None where no convolution is a candidate.
    """
    method = method_for(length)
    if not _convolved(method):
        return None
    plan = own_plan(method, PRECISIONS["3xfp16"], arch_for(TMA_SM), wide=False)
    return plan if isinstance(plan, ButterflyPlan | ThreeKernelPlan | TwoPassPlan) else None


def with_few_rows(choice: Choice, method: Method, rows: int, device: Device) -> Choice:
    """Return the choice for ``rows`` rows: another where they fill too few multiprocessors.

    Lengths of `SHORT` are then convolutions of least latency, other dense ones and primes cuFFT's.
    """
    length = method.length
    if fills(rows, length, device):
        return choice
    short = plan_of_few_rows(length, rows, device)
    if short is not None:
        return Choice(short, f"{short.stages} in fp32, of few rows")
    if choice.plan is None:
        return choice
    if method.kind == "dense" or len(prime_factors(length)) == 1:
        return Choice(None, "faster at so few numbers, and in fp32")
    return choice


def fills(rows: int, length: int, device: Device) -> bool:
    """Return whether transforms have numbers for all multiprocessors of a GPU."""
    return rows * length >= FEW_NUMBERS * device.sm_count


def plan_of_few_rows(length: int, rows: int, device: Device) -> ButterflyPlan | None:
    """Return the convolution of least latency; None for many rows and for cuFFT's lengths."""
    taken = length in SHORT and max(prime_factors(length)) > FAST_PRIME
    short = short_plan(length, rows, device.sm_count) if taken else None
    # No convolution's plan depends on the precision.
    if short is None or not is_legal(short, PRECISIONS["3xfp16"], device.require_arch()):
        return None
    return short


def own_plan(
    method: Method, precision: Precision, arch: Arch, *, wide: bool, full: bool = False
) -> Plan | None:
    """Return the best candidate plan, arguments as of `choose`; None where none fits."""
    every = candidates(method, precision, arch, wide=wide)
    timed = [plan for plan in every if isinstance(plan, TwoPassPlan | MixedRadixPlan)]
    other = _best_of_others([plan for plan in every if plan not in timed], precision, arch)
    fitting = [plan for plan in timed if full or isinstance(plan, TwoPassPlan)]
    best = min(fitting, key=lambda plan: own_time(plan, precision), default=None)
    if best is None or other is None:
        return best or other
    return best if own_time(best, precision) < own_time(other, precision) else other


def _best_of_others(plans: list[Plan], precision: Precision, arch: Arch) -> Plan | None:
    """Return the best candidate but for two passes and mixed radices; None where there is none."""
    found = ordered(plans, precision)
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

    Without wide copies, which leave the plan fewer buffers, it is faster by 1.1 to 1.7 (433 to 761
    on an H200).
    """
    legal = legal_butterflies(plan.length, precision, arch)
    best = min(legal, key=butterfly_order, default=None)
    if best is None or not plan.wide_copies:
        return best
    return best if butterfly_cycles(best) < _SLOWER_CYCLES[best.rader] * plan.length else None


def legal_butterflies(length: int, precision: Precision, arch: Arch) -> list[ButterflyPlan]:
    """Return the butterfly plans of a length that an architecture takes."""
    return [plan for plan in butterfly_plans(length) if is_legal(plan, precision, arch)]


def _fullest_butterflies(length: int, precision: Precision, arch: Arch) -> Iterator[ButterflyPlan]:
    """Yield the legal butterfly plans with the most groups, of those that differ in nothing else.

    `_most_groups` would leave these of all: most of the host's time would go into the others.
    """
    every = butterfly_plans(length)
    for _, some in groupby(every, lambda plan: (plan.rader, plan.radices, plan.warps)):
        legal = (plan for plan in reversed(list(some)) if is_legal(plan, precision, arch))
        yield from islice(legal, 1)


def candidates(method: Method, precision: Precision, arch: Arch, *, wide: bool) -> list[Plan]:
    """Return the candidate plans of a method."""
    every = _tensor_core_plans(method, precision, wide)
    if _convolved(method):
        convolutions = _fullest_butterflies(method.length, precision, arch)
        every = chain(every, convolutions, three_kernel_plans(method.length))
    elif _many_kernels(method):
        every = chain(every, _fullest_butterflies(method.length, precision, arch))
    elif wide:
        every = chain(every, large_plans(method.length))
    every = chain(every, mixed_radix_plans(method.length), two_pass_plans(method.length))
    found = {plan: None for plan in every if is_legal(plan, precision, arch)}
    if not found and method.kind == "dense":
        # A prime that wgmma does not take.
        found = dict.fromkeys(_fullest_butterflies(method.length, precision, arch))
    # Tables stay in L2 where shared memory has no room for two tiles beside them.
    held = [
        plan
        for plan in found
        if not isinstance(plan, DensePlan) or (plan.table_in_shared and plan.groups > 1)
    ]
    return _most_groups(held or list(found))


def _convolved(method: Method) -> bool:
    """Return whether convolutions in fp32 are candidates, perhaps beside plans on tensor cores."""
    awkward = method.kind == "product" and max(prime_factors(method.length)) > FAST_PRIME
    return awkward or method.kind in ("rader", "bluestein")


def _many_kernels(method: Method) -> bool:
    """Return whether cuFFT may have several kernels for a length that no two factors make."""
    if method.kind != "product" or all(part.kind == "dense" for part in method.parts):
        return False
    return prime_factors(method.length)[-1] >= OWN_KERNEL


def _tensor_core_plans(method: Method, precision: Precision, wide: bool) -> Iterator[Plan]:
    """Return dense, Hankel and two-factor plans."""
    if method.kind == "dense":
        return chain(dense_plans(method.length, precision, wide), hankel_plans(method.length, wide))
    if method.kind == "product" and all(part.kind == "dense" for part in method.parts):
        return two_factor_plans(method.length, wide)
    return iter(())


def _most_groups(plans: list[Plan]) -> list[Plan]:
    """Return the plans with the most groups, of those that differ in nothing else.

    All Hankel plans stay, because their groups share the buffers.
    """
    found: dict[tuple[object, ...], Plan] = {}
    for plan in plans:
        names = [name for name in plan.__dataclass_fields__ if name != "groups"]
        shared = plan.groups if isinstance(plan, HankelPlan) else 0
        key = (plan.kind, shared, *(getattr(plan, name) for name in names))
        if key not in found or found[key].groups < plan.groups:
            found[key] = plan
    return list(found.values())


def best_of_each_kind(plans: Iterable[Plan], most: int, precision: Precision) -> list[Plan]:
    """Return at most ``most`` plans of each kind, the best first."""
    kinds: dict[str, list[Plan]] = {}
    for plan in ordered(plans, precision):
        kinds.setdefault(plan.kind, []).append(plan)
    return [plan for some in kinds.values() for plan in some[:most]]


def ordered(plans: Iterable[Plan], precision: Precision) -> list[Plan]:
    """Return plans by their estimates, the best first."""
    return sorted(plans, key=lambda plan: estimate(plan, precision))


def estimate(plan: Plan, precision: Precision) -> tuple[float, ...]:
    """Return the sort key of plans, the best first: cycles of a convolution, ranks of the others.

    Fitted to measurements on an H200; it only has to rank.
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
