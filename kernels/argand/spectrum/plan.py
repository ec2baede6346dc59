"""Kernels of spectral estimates: plans, sources and sizes. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from argand.channelise import plan as banks
from argand.channelise.plan import UNITS, ChannelisePlan
from argand.channelise.problem import ChanneliseProblem
from argand.device import Arch
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.loading import compiled
from argand.runtime.launch.arguments import Fields, size_check
from argand.runtime.plan import PlanError
from argand.spectrum.problem import SpectrumProblem

# Structures of cuda/spectrum/arguments.cuh; the last members are those of ``Bins``.
_BINS: Fields = (
    ("double", "scale"), ("double", "inner"), ("int64", "length"), ("int64", "pitch"),
    ("int64", "mirrored"),
)  # fmt: skip
KERNEL_ARGUMENTS: Fields = (
    ("const void*", "x"), ("float*", "out"), ("double*", "partial"), ("const float*", "window"),
    ("const float2*", "twiddles"), ("const Trend*", "trends"), ("int64", "row_stride"),
    ("int64", "hop"), ("int64", "groups"), ("int64", "average"), ("int64", "items"),
    ("int64", "chunks"), ("int64", "batches"), *_BINS,
)  # fmt: skip
TREND_ARGUMENTS: Fields = (
    ("const void*", "x"), ("double*", "trends"), ("int64", "row_stride"), ("int64", "hop"),
    ("int64", "segments"), ("int64", "count"), ("int64", "length"), ("int64", "linear"),
)  # fmt: skip
WINDOW_ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("const void*", "window"), ("const Trend*", "trends"),
    ("int64", "row_stride"), ("int64", "hop"), ("int64", "segments"), ("int64", "first"),
    ("int64", "count"), ("int64", "length"),
)  # fmt: skip
SUM_ARGUMENTS: Fields = (
    ("const void*", "from"), ("void*", "out"), ("int64", "rows"), ("int64", "terms"),
    ("int64", "parts"), ("int64", "part_terms"), ("int64", "stride"), ("int64", "computed"),
    ("int64", "partial"), *_BINS,
)  # fmt: skip
THREADS = 256
"""Threads of a block of the kernels that window and sum alone."""
TERMS = {"float64": "double", "complex64": "float2", "complex128": "double2"}
"""Types of what `sum_source` adds, in CUDA C++: sums, or spectra whose squares are added."""
_REALS = {"float32": "float", "float64": "double"}
SAMPLES = {
    "float32": ("float", "float"), "float64": ("double", "double"),
    "complex64": ("float2", "float"), "complex128": ("double2", "double"),
}  # fmt: skip
"""Types of samples that `window_source` takes, and of their window, in CUDA C++."""
PARTS = _REALS | {"int8": "signed char", "int16": "short"}
"""Types of the parts of samples whose trends are found, in CUDA C++."""


@dataclass(frozen=True)
class SpectrumPlan:
    """A plan of the kernel of spectral estimates.

    Attributes:
        transforms: the plan of the transforms of a batch of segments: a filter bank of one tap.
        summed: segments of a group where a batch has whole groups; 0 where a batch is a part of
            one.
        detrended: whether trends are subtracted.
    """

    transforms: ChannelisePlan
    summed: int
    detrended: bool = False

    @property
    def computed(self) -> int:
        """Bins that are computed: N, of real samples N / 2 + 1."""
        return self.transforms.points + self.transforms.real

    def __str__(self) -> str:
        """Return the plan in words."""
        radices = " x ".join(map(str, self.transforms.radices))
        return f"window, {radices} points and squares in one kernel"


def check_plan(plan: SpectrumPlan, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    one = plan.transforms
    banks.check_plan(one, arch)
    if (one.taps, one.phases) != (1, 1):
        raise PlanError(f"transforms must have 1 tap and 1 phase, got {one.taps} and {one.phases}")
    if plan.summed < 0 or (plan.summed and one.batch % plan.summed):
        raise PlanError(f"a batch of {one.batch} segments has no whole groups of {plan.summed}")


@lru_cache(maxsize=256)
def plan_spectrum(problem: SpectrumProblem, arch: Arch) -> SpectrumPlan | None:
    """Return the plan of a problem; None where no kernel is for it.

    That is at fp64 and beyond the lengths of a filter bank's kernel, odd ones of real samples
    among them.
    """
    if problem.length < 2:
        return None
    bank = ChanneliseProblem(
        problem.leading, problem.samples, problem.length, 1, Fraction(1), problem.real,
        problem.precision,
    )  # fmt: skip
    found = banks.plan_channelise(bank, arch)
    if found is None:
        return None
    found, average = _in_warps(found), problem.average
    if average <= found.batch:
        whole = replace(found, batch=found.batch // average * average)
        return SpectrumPlan(whole, average, problem.detrend is not None)
    # As even as may be: the last batch of a group has few segments less than the others.
    count = -(-average // found.batch)
    part = _evener(replace(found, batch=-(-average // count)))
    return SpectrumPlan(part, 0, problem.detrend is not None)


def _in_warps(plan: ChannelisePlan) -> ChannelisePlan:
    """Return the plan with groups of whole warps where odd ones make a block too large for sums."""
    if plan.block_threads <= 2 * THREADS:
        return plan
    threads = -(-plan.threads // 32) * 32
    groups = max(1, THREADS // threads)
    batch = min(banks.LARGEST_BATCH, plan.batch * plan.groups // groups)
    return replace(plan, threads=threads, groups=groups, batch=batch)


def _evener(plan: ChannelisePlan) -> ChannelisePlan:
    """Return the plan without a radix that leaves no registers for sums of bins, where it has."""
    every = (
        (first, second, plan.points // first // second)
        for first in (8, 16)
        for second in range(2, banks.LARGEST_RADIX)
        if plan.points % (first * second) == 0 and plan.points // first // second > 1
    )
    if max(plan.radices) < banks.LARGEST_RADIX:
        return plan
    radices = min(every, key=lambda one: (max(one), one), default=plan.radices)
    return replace(plan, radices=radices)


def bin_factors(problem: SpectrumProblem) -> dict[str, float]:
    """Return the members of ``Bins``: what sums are multiplied by, and where bins lie."""
    scale = 1 / problem.average
    return {
        "scale": scale, "inner": 2 * scale if problem.onesided else scale,
        "length": problem.length, "pitch": problem.bins,
        "mirrored": int(problem.bins > problem.half),
    }  # fmt: skip


def kernel_name(plan: SpectrumPlan, component: str, *, aligned: bool) -> str:
    """Return the name of the kernel of a plan, for samples of components of a type."""
    one = plan.transforms
    radices = "x".join(map(str, one.radices))
    kind = "complex" if not one.real else "real" if aligned else "real_unaligned"
    kind += "_detrended" * plan.detrended
    return f"spectrum_{UNITS[component][0]}_{kind}_{radices}_{one.batch}_{plan.summed}"


def kernel_source(plan: SpectrumPlan, component: str, *, aligned: bool) -> str:
    """Return the CUDA C++ of the kernel; ``aligned`` says that all units are on their size."""
    one = plan.transforms
    name = kernel_name(plan, component, aligned=aligned)
    component_name = f"Component::{UNITS[component][0]}"
    traits = listed(component_name, plan.summed, aligned, plan.detrended)
    return (
        '#include "spectrum/kernel.cuh"\n'
        f"{size_check('SpectrumArguments', KERNEL_ARGUMENTS)}"
        f"constexpr ChannelisePlan kPlan = {{{banks.members(one)}}};\n"
        f"static_assert(kPlan.shared_bytes() == {one.shared_bytes});\n"
        + kernel_entry(
            name,
            "SpectrumArguments",
            f"SpectrumKernel<kPlan, {traits}>::run(args);",
            one.block_threads,
            one.blocks,
        )
    )


@lru_cache(maxsize=256)
def without_spills(
    plan: SpectrumPlan, component: str, target: str, *, aligned: bool
) -> SpectrumPlan:
    """Return the plan with as many blocks on a multiprocessor as leave a thread its registers.

    As `argand.channelise.plan.without_spills`, whose errors it raises.
    """
    for blocks in banks.fewer_blocks(plan.transforms):
        one = replace(plan, transforms=replace(plan.transforms, blocks=blocks))
        found = compiled(kernel_source(one, component, aligned=aligned), target)
        if not found.resources[kernel_name(one, component, aligned=aligned)].spill_stores:
            return one
    return plan


def trend_name(dtype: str, *, real: bool) -> str:
    """Return the name of the kernel that finds trends, of samples whose parts have a type."""
    return f"spectrum_trend_{dtype}_{'real' if real else 'complex'}"


def trend_source(dtype: str, *, real: bool) -> str:
    """Return the CUDA C++ that finds trends; ``dtype`` is a key of `PARTS`."""
    return (
        '#include "spectrum/trend.cuh"\n'
        f"{size_check('TrendArguments', TREND_ARGUMENTS)}"
        + kernel_entry(
            trend_name(dtype, real=real),
            "TrendArguments",
            f"FindTrends<{PARTS[dtype]}, {1 if real else 2}, {THREADS}>::run(args);",
            THREADS,
        )
    )


def window_name(dtype: str) -> str:
    """Return the name of the kernel that windows segments of samples of a type."""
    return f"spectrum_window_{dtype}"


def window_source(dtype: str) -> str:
    """Return the CUDA C++ of the window alone, of samples and results of a type of `SAMPLES`."""
    sample, real = SAMPLES[dtype]
    return (
        '#include "spectrum/unfused.cuh"\n'
        f"{size_check('WindowArguments', WINDOW_ARGUMENTS)}"
        + kernel_entry(
            window_name(dtype), "WindowArguments", f"window_segments<{sample}, {real}>(args);",
            THREADS,
        )
    )  # fmt: skip


def sum_name(term: str, result: str) -> str:
    """Return the name of the kernel that adds terms of a type to a result of another."""
    return f"spectrum_sum_{term}_{result}"


def sum_source(term: str, result: str) -> str:
    """Return the CUDA C++ of sums; ``term`` is a key of `TERMS`, result float32 or float64."""
    return (
        '#include "spectrum/unfused.cuh"\n'
        f"{size_check('SumArguments', SUM_ARGUMENTS)}"
        + kernel_entry(
            sum_name(term, result),
            "SumArguments",
            f"sum_terms<{TERMS[term]}, {_REALS[result]}, {THREADS}>(args);",
            THREADS,
        )
    )
