"""Filter banks of few channels, a spectrum a thread: plans and sources, which need no GPU."""

from __future__ import annotations

from dataclasses import dataclass

from argand.channelise.plan import LARGEST_PRIME, LARGEST_RADIX, UNITS
from argand.channelise.problem import ChanneliseProblem
from argand.device import Arch
from argand.dft.method import prime_factors
from argand.multiprocessor import LARGEST_BLOCK, WARP
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError, is_legal

_SPECTRA = 128
"""Spectra of a block."""
_BLOCKS = 4
"""Fewest blocks of a multiprocessor where shared memory has room: 128 registers of a thread."""
FEW_POINTS = 27
"""Points up to which this kernel is the fastest: a warp's accesses to short frames are pieces of
lines in the other ones. More points leave fewer threads on a multiprocessor."""
# SingleThreadArguments of cuda/channelise/plan.cuh.
SINGLE_THREAD_ARGUMENTS = (
    ("const void*", "x"), ("float2*", "out"), ("const float*", "coefficients"),
    ("int64", "samples"), ("int64", "spectra"), ("int64", "chunks"),
)  # fmt: skip


@dataclass(frozen=True)
class SingleThreadPlan:
    """A plan of the kernel in which each thread computes a spectrum.

    Attributes:
        channels, taps: M and T.
        hop: samples from a spectrum to the next.
        real: whether samples are real.
        spectra: spectra of a block, which has as many threads.
    """

    channels: int
    taps: int
    hop: int
    real: bool
    spectra: int = _SPECTRA

    @property
    def points(self) -> int:
        """Numbers of a thread's transform; an even number of real samples is half as many."""
        return self.channels // 2 if self.real and self.channels % 2 == 0 else self.channels

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block (``SingleThreadPlan`` of cuda/channelise/plan.cuh)."""
        bins = self.channels // 2 + 1 if self.real else self.channels
        last = 0 if self.hop == self.channels else self.channels - 1
        length = last + (self.spectra - 1) * self.hop + self.channels * self.taps
        samples = -(-length // self.channels) * (self.channels | 1) * (4 if self.real else 8)
        coefficients = self.taps * -(-self.channels // 4) * 16
        return coefficients + max(samples, self.spectra * (bins | 1) * 8)

    def blocks(self, arch: Arch) -> int:
        """Return the fewest blocks of a multiprocessor, which limit a thread's registers."""
        return max(1, min(_BLOCKS, arch.resident_blocks(self.shared_bytes)))

    def __str__(self) -> str:
        """Return the plan in words."""
        return f"filter of {self.taps} taps and {self.channels} channels by a thread a spectrum"


def check_single_thread_plan(plan: SingleThreadPlan, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if not 2 <= plan.points <= LARGEST_RADIX:
        raise PlanError(f"a thread transforms 2 to {LARGEST_RADIX} numbers, got {plan.points}")
    if max(prime_factors(plan.points)) > LARGEST_PRIME:
        raise PlanError(f"prime factors must be at most {LARGEST_PRIME}, got {plan.points}")
    if plan.spectra % WARP or not 0 < plan.spectra <= LARGEST_BLOCK:
        raise PlanError(
            f"spectra of a block must be whole warps, {WARP} to {LARGEST_BLOCK}, got {plan.spectra}"
        )
    if plan.shared_bytes > arch.shared_bytes:
        raise PlanError(
            f"a block may use {arch.shared_bytes} bytes of shared memory on {arch.name}, "
            f"{plan} takes {plan.shared_bytes}"
        )


def single_thread_plan(problem: ChanneliseProblem, arch: Arch) -> SingleThreadPlan | None:
    """Return the plan of a problem; None at fp64, and where a thread cannot hold a spectrum."""
    plan = SingleThreadPlan(problem.channels, problem.taps, problem.hop, problem.real)
    if problem.precision.name == "fp64":
        return None
    return plan if is_legal(check_single_thread_plan, plan, arch) else None


def single_thread_name(plan: SingleThreadPlan, component: str) -> str:
    """Return the name of the kernel of a plan, for samples of components of a type."""
    kind = "real" if plan.real else "complex"
    sizes = f"{plan.channels}_{plan.taps}_{plan.hop}"
    return f"channelise_single_thread_{UNITS[component][0]}_{kind}_{sizes}"


def single_thread_source(plan: SingleThreadPlan, component: str, arch: Arch) -> str:
    """Return the CUDA C++ of the kernel."""
    members = listed(plan.channels, plan.taps, plan.hop, plan.real, plan.spectra)
    return (
        '#include "channelise/single_thread.cuh"\n'
        f"{size_check('SingleThreadArguments', SINGLE_THREAD_ARGUMENTS)}"
        f"constexpr SingleThreadPlan kPlan = {{{members}}};\n"
        f"static_assert(kPlan.shared_bytes() == {plan.shared_bytes});\n"
        + kernel_entry(
            single_thread_name(plan, component),
            "SingleThreadArguments",
            f"SingleThreadKernel<kPlan, Component::{UNITS[component][0]}>::run(args);",
            plan.spectra,
            plan.blocks(arch),
        )
    )
