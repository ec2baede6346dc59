"""Kernels of filter banks: their plans, sources and sizes. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from argand.channelise.problem import ChanneliseProblem
from argand.device import Arch
from argand.dft.method import prime_factors
from argand.dft.tables import Array, roots
from argand.multiprocessor import LARGEST_BLOCK, WARP
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.loading import compiled
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError, is_legal

LARGEST_POINTS = 4096
"""Points of a transform in shared memory: channels of complex samples, half of those of real."""
LARGEST_RADIX = 32
"""Largest radix of a butterfly in registers."""
LARGEST_PRIME = 13
"""Largest prime of a radix: the work of a prime's butterfly is quadratic."""
_THREADS = 256
_ROOM = ((8192, 2), (8192, 1), (12288, 2), (12288, 1), (16384, 1), (LARGEST_POINTS, 1))
"""Numbers of a batch's transforms in shared memory, and blocks of a multiprocessor."""
_MAX_LOADED = 12
"""Frames that a batch loads, where each residue has an address of its own: more make it spill."""
_MAX_TAPS = 32
"""Most taps of a thread's window."""
LARGEST_BATCH = 32
"""Spectra of a batch at most: the loop over them is unrolled."""
COMPONENTS = {"float32": ("fp32", 8), "int8": ("int8", 2), "int16": ("int16", 4)}
"""Types of samples that the kernel reads: name of ``Component``, bytes of a unit (units.cuh)."""
_CONJUGATE = "conjugate_"
UNITS = COMPONENTS | {
    _CONJUGATE + name: (_CONJUGATE + kind, unit) for name, (kind, unit) in COMPONENTS.items()
}
"""`COMPONENTS`, and those of complex samples whose conjugates the kernel computes with."""
_FEWER = (1, 3 / 4, 1 / 2, 1 / 4)
"""Parts of a plan's blocks that `without_spills` tries."""
# ChanneliseArguments of cuda/channelise/plan.cuh.
KERNEL_ARGUMENTS = (
    ("const void*", "x"), ("float2*", "out"), ("const float*", "coefficients"),
    ("const float2*", "twiddles"), ("int64", "row_stride"), ("int64", "spectra"),
    ("int64", "items"), ("int64", "chunks"), ("int64", "batches"), ("int64", "hop"),
)  # fmt: skip


@dataclass(frozen=True)
class ChannelisePlan:
    """A plan of the kernel that filters and transforms.

    Attributes:
        points: points of a transform, the product of the radices.
        taps: T.
        phases, frames: p and q of the oversampling.
        real: whether samples are; a unit is then an even and an odd one.
        radices: R0 of the filter's threads, then R1 and R2 in shared memory; R1 may be 1.
        batch: spectra in shared memory at a time.
        threads: threads of a group.
        groups: groups of a block, each with spectra of its own.
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
    """

    points: int
    taps: int
    phases: int
    frames: int
    real: bool
    radices: tuple[int, int, int]
    batch: int
    threads: int
    groups: int
    blocks: int

    @property
    def columns(self) -> int:
        """Numbers between those of a butterfly of the first stage."""
        return self.points // self.radices[0]

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return self.threads * self.groups

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block (``ChannelisePlan`` of cuda/channelise/plan.cuh)."""
        first, second, last = self.radices
        least = second * (last + (last % 2 == 0))
        bank = max(1, 16 // first)
        line = least + (bank - least % 16) % 16 if self.columns >= 16 else least
        return self.groups * self.batch * first * line * 8

    def __str__(self) -> str:
        """Return the plan in words."""
        radices = " x ".join(map(str, self.radices))
        return f"filter of {self.taps} taps and {radices} points in one kernel"


def check_plan(plan: ChannelisePlan, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if prod(plan.radices) != plan.points or plan.points > LARGEST_POINTS:
        raise PlanError(f"radices {plan.radices} are not those of {plan.points} points")
    if max(plan.radices) > LARGEST_RADIX or min(plan.radices) < 1 or plan.radices[2] < 2:
        raise PlanError(f"radices must be from 1 to {LARGEST_RADIX}, the last from 2 on")
    if any(max(prime_factors(radix), default=1) > LARGEST_PRIME for radix in plan.radices):
        raise PlanError(f"radices must have prime factors up to {LARGEST_PRIME}: {plan.radices}")
    if plan.radices[0] > _most_residues(plan.taps, plan.phases, plan.real):
        raise PlanError(f"{plan.taps} taps of {plan.radices[0]} residues take too many registers")
    if not 1 <= plan.batch <= LARGEST_BATCH:
        raise PlanError(f"batch must be from 1 to {LARGEST_BATCH}, got {plan.batch}")
    if plan.block_threads > LARGEST_BLOCK or plan.block_threads % WARP:
        raise PlanError(f"a block must have whole warps, at most 32, got {plan.block_threads}")
    if plan.blocks * plan.block_threads > LARGEST_BLOCK or plan.blocks < 1:
        raise PlanError(f"blocks of {plan.block_threads} threads leave too few registers")
    if plan.blocks > arch.resident_blocks(plan.shared_bytes):
        raise PlanError(
            f"{plan.blocks} blocks take {plan.shared_bytes} bytes of shared memory each"
        )


@lru_cache(maxsize=256)
def plan_channelise(problem: ChanneliseProblem, arch: Arch) -> ChannelisePlan | None:
    """Return the best plan of the kernel that the architecture can run; None where it has none.

    It has none at fp64, beyond the kernel's lengths and taps, and for real samples where a spectrum
    begins at an odd sample.
    """
    if problem.precision.name == "fp64":
        return None
    if problem.real and (problem.channels % 2 or (problem.hop % 2 and problem.phases > 1)):
        return None
    points = _points(problem)
    if points > LARGEST_POINTS:
        return None
    for plan in _plans(points, problem.taps, problem.phases, problem.frames, problem.real):
        if is_legal(check_plan, plan, arch):
            return plan
    return None


def _points(problem: ChanneliseProblem) -> int:
    return problem.channels // (2 if problem.real else 1)


def _plans(
    points: int, taps: int, phases: int, frames: int, real: bool
) -> Iterator[ChannelisePlan]:
    """Yield candidate plans, the best first."""
    most = _most_residues(taps, phases, real)
    spectra = LARGEST_BATCH if phases == 1 else max(4, _MAX_LOADED // frames)
    for first in (4, 2, 8, 6, 5, 3, 1):
        if points % first or first > most:
            continue
        for second, last in _factors(points // first):
            columns = points // first
            threads = min(_THREADS, columns)
            groups = max(1, _THREADS // 2 // columns)
            while threads * groups % WARP:
                groups += 1
            share = max(1, _THREADS // (threads * groups))
            for numbers, blocks in _ROOM:
                room = min(spectra, numbers // share // (points * groups))
                for batch in range(room, 0, -1):
                    yield ChannelisePlan(
                        points=points, taps=taps, phases=phases, frames=frames, real=real,
                        radices=(first, second, last), batch=batch, threads=threads, groups=groups,
                        blocks=blocks * share,
                    )  # fmt: skip


def _most_residues(taps: int, phases: int, real: bool) -> int:
    """Return the most residues of a thread, R0, whose taps leave registers for two blocks.

    They are of 32 units together, or of 16 where a unit has two coefficients (real samples) or each
    residue an address of its own (oversampled): then a single one may still have 32, in one block.
    """
    most = (16 if real or phases > 1 else 32) // taps
    return 1 if most == 0 and taps <= _MAX_TAPS else most


def _factors(columns: int) -> Iterator[tuple[int, int]]:
    """Yield R1 and R2 of ``columns`` columns, the most even first; one stage of few columns."""
    if 2 <= columns <= LARGEST_RADIX // 2:
        yield 1, columns
    found = [
        (columns // last, last)
        for last in range(2, LARGEST_RADIX + 1)
        if columns % last == 0 and 2 <= columns // last <= LARGEST_RADIX
    ]
    # With 16 or more numbers side by side a half-warp of the second stage meets no bank twice.
    yield from sorted(found, key=lambda pair: (max(pair), pair[1] < 16, pair[0] < pair[1]))
    if columns <= LARGEST_RADIX:
        yield 1, columns


@lru_cache(maxsize=64)
def twiddle_tables(plan: ChannelisePlan) -> Array:
    """Return complex64 twiddles: W_M^(j k0), W_P^(n2 k1) and, of real samples, W_2M^k."""
    first, second, last = plan.radices
    columns, points = plan.columns, plan.points
    found = [
        roots(np.outer(np.arange(1, first), np.arange(columns)), points).ravel(),
        roots(np.outer(np.arange(1, second), np.arange(last)), columns).ravel(),
    ]
    if plan.real:
        found.append(roots(np.arange(points // 2 + 1), 2 * points))
    return np.concatenate(found).astype(np.complex64)


def read_as(component: str, *, conjugate: bool) -> str:
    """Return the name in `UNITS` of components of a type, of samples or of their conjugates."""
    return _CONJUGATE * conjugate + component


def kernel_name(plan: ChannelisePlan, component: str) -> str:
    """Return the name of the kernel of a plan, for samples of components of a type."""
    radices = "x".join(map(str, plan.radices))
    kind = "real" if plan.real else "complex"
    return f"channelise_{UNITS[component][0]}_{kind}_{radices}_{plan.taps}"


def members(plan: ChannelisePlan) -> str:
    """Return the members of a ``ChannelisePlan`` in CUDA C++."""
    return listed(
        plan.points, plan.taps, plan.phases, plan.frames, plan.real, plan.radices, plan.batch,
        plan.threads, plan.groups,
    )  # fmt: skip


def kernel_source(plan: ChannelisePlan, component: str) -> str:
    """Return the CUDA C++ of the kernel."""
    return (
        '#include "channelise/kernel.cuh"\n'
        f"{size_check('ChanneliseArguments', KERNEL_ARGUMENTS)}"
        f"constexpr ChannelisePlan kPlan = {{{members(plan)}}};\n"
        f"static_assert(kPlan.shared_bytes() == {plan.shared_bytes});\n"
        + kernel_entry(
            kernel_name(plan, component),
            "ChanneliseArguments",
            f"ChanneliseKernel<kPlan, Component::{UNITS[component][0]}>::run(args);",
            plan.block_threads,
            plan.blocks,
        )
    )


def fewer_blocks(plan: ChannelisePlan) -> Iterable[int]:
    """Return the blocks of a multiprocessor that `without_spills` tries, the most first."""
    return dict.fromkeys(max(1, int(plan.blocks * part)) for part in _FEWER)


@lru_cache(maxsize=256)
def without_spills(plan: ChannelisePlan, component: str, target: str) -> ChannelisePlan:
    """Return the plan with as many blocks on a multiprocessor as leave a thread its registers.

    The registers that a thread needs depend on the type of samples and the architecture, and only
    the compiler knows them: the plan is compiled with fewer blocks until the kernel does not spill.
    Where it always does, the plan is returned as it is.

    Raises CompileError where NVRTC fails, and NotLaunchedError within `compiling_only`.
    """
    for blocks in fewer_blocks(plan):
        one = replace(plan, blocks=blocks)
        found = compiled(kernel_source(one, component), target)
        if not found.resources[kernel_name(one, component)].spill_stores:
            return one
    return plan
