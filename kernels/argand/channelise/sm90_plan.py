"""Plans of filter banks by specialised warps (sm_90a). Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import lcm

import numpy as np

from argand.channelise.plan import (
    COMPONENTS,
    KERNEL_ARGUMENTS,
    UNITS,
    ChannelisePlan,
    check_plan,
    kernel_name,
    members,
    twiddle_tables,
)
from argand.device import Arch
from argand.dft.tables import Array, roots
from argand.multiprocessor import PORTABLE_CLUSTER, REGISTERS, WARPGROUP
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal

_SPARE_SLOTS = 1
"""Slots of the ring beside those of the transform groups: more leave less of L1 for tables."""
_FEW_TAPS = 4
"""Taps up to which integers, which are converted, gain nothing by being kept in registers."""
_MAX_DEPTH = 8
"""Most frames of a ring."""
_RING_BYTES = 32 << 10
"""Largest ring of frames: what is copied ahead hides the latency of memory."""
_ROLES = {128: (1, 176, 80), 256: (3, 144, 64)}
"""Groups of transform warps, and registers of filter and transform warps, by columns of a block."""
_LONG_ROLES = {128: (1, 144, 112), 256: (2, 144, 112)}
"""`_ROLES` where a stage has a radix above 16, whose butterfly takes twice the registers."""
_SHORT_RADIX = 16
"""Largest radix of a stage of `_ROLES`."""
_SLOT_NUMBERS = 4096
"""Numbers of a batch in a cluster: butterflies enough for a group."""
_LONGEST_TURN = 16
"""Spectra of a loop without branches: windows of taps, batches and rings of frames repeat in it."""


@dataclass(frozen=True)
class SpecializedPlan(ChannelisePlan):
    """A plan of filter and transform warps for critically sampled banks of complex samples.

    ``threads`` are those of a group of transform warps, ``groups`` is 1; a filter thread has a
    column.

    Attributes:
        unit_bytes: bytes of a complex sample.
        depth: frames that are copied to shared memory ahead.
        slots: batches of the ring between both.
        transform_groups: which take batches in turn.
        filter_registers, transform_registers: registers of a thread of either role.
        arrive_per_lane: every lane arrives at mbarriers, so that compute-sanitizer's racecheck
            follows their order.
        cluster: blocks that share the columns.
    """

    unit_bytes: int = 8
    depth: int = 8
    slots: int = 4
    transform_groups: int = 3
    filter_registers: int = 144
    transform_registers: int = 64
    arrive_per_lane: bool = False
    cluster: int = 1

    @property
    def block_columns(self) -> int:
        """Filter threads of a block."""
        return self.columns // self.cluster

    @property
    def keeps_twiddles(self) -> bool:
        """Whether transform threads keep the twiddles of the last stage in registers."""
        return keeps_twiddles(self.radices, self.threads)

    @property
    def turn(self) -> int:
        """Number of spectra after which the ring of frames and the batches repeat together."""
        return lcm(self.taps, self.batch, self.depth)

    @property
    def block_threads(self) -> int:
        """Threads of a block."""
        return self.block_columns + self.transform_groups * self.threads

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: both rings."""
        frame = self.points // self.cluster * self.unit_bytes
        return self.slots * super().shared_bytes + self.depth * frame


def keeps_twiddles(radices: tuple[int, int, int], threads: int) -> bool:
    """Return whether a thread has the same channels of each spectrum, and the last radix is 2^m.

    As kKeepsTwiddles of cuda/channelise/sm90_kernel.cuh.
    """
    first, second, last = radices
    return last & (last - 1) == 0 and threads % (first * second) == 0 and threads % last == 0


def check_specialized_plan(plan: SpecializedPlan, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if not 1 <= plan.cluster <= PORTABLE_CLUSTER or plan.columns % plan.cluster:
        raise PlanError(f"a cluster of up to {PORTABLE_CLUSTER} blocks must divide {plan.columns}")
    check_plan(plan, arch)
    if arch.target != WGMMA_TARGET:
        raise PlanError(f"specialised warps need {WGMMA_TARGET}, got {arch.target}")
    if plan.real or plan.phases != 1 or plan.groups != 1:
        raise PlanError(f"specialised warps take critically sampled complex samples, got {plan!r}")
    if plan.block_columns % WARPGROUP or plan.threads % WARPGROUP:
        raise PlanError(f"roles must be whole warpgroups of {WARPGROUP} threads, got {plan!r}")
    if plan.turn > _LONGEST_TURN or plan.slots < plan.transform_groups + (plan.cluster == 1):
        raise PlanError(
            f"taps, batch and depth must divide a number up to {_LONGEST_TURN}, and slots exceed "
            f"groups, "
            f"got {plan!r}"
        )
    if plan.cluster > 1 and plan.slots % plan.transform_groups:
        # A group may tell a slot's mbarrier of bytes only after its own batch there before.
        raise PlanError(f"in a cluster a slot must have one group, got {plan!r}")
    if plan.depth < 2:
        raise PlanError(f"depth must be 2 or more, got {plan.depth}")
    barriers = 8 * (1 + plan.cluster) * plan.slots
    taken = plan.shared_bytes + barriers
    if plan.blocks > arch.resident_blocks(taken):
        raise PlanError(
            f"rings and barriers of {plan.blocks} blocks take {taken} bytes of shared memory each"
        )
    held = REGISTERS // plan.blocks // plan.block_threads // 8 * 8 * plan.block_threads
    needed = (
        plan.block_columns * plan.filter_registers
        + plan.transform_groups * plan.threads * plan.transform_registers
    )
    if needed > held:
        raise PlanError(f"roles take {needed} registers of {held}")


def specialized(plan: ChannelisePlan, component: str, arch: Arch) -> SpecializedPlan | None:
    """Return the plan by specialised warps of the bank of ``plan``; None where there is none.

    ``component`` is the type of the samples' components.

    Groups of 128 threads transform: while some wait at a barrier or for memory, others compute. A
    batch has as many butterflies of a stage as columns, or less, but not less than half of them; in
    a cluster as many as the numbers of `_SLOT_NUMBERS` have.
    """
    first, second, last = plan.radices
    converted = UNITS[component][1] < COMPONENTS["float32"][1]
    if second == 1 or (converted and plan.taps <= _FEW_TAPS):
        return None
    columns = next((size for size in sorted(_ROLES, reverse=True) if plan.columns % size == 0), 0)
    if not columns:
        return None
    cluster = plan.columns // columns
    if cluster > 1:
        # Kept twiddles are as many as half of the last radix. Without them the last stage, which
        # twiddles nothing, has the larger radix.
        second, last = sorted((second, last))
        if keeps_twiddles((first, last, second), WARPGROUP):
            second, last = last, second
    largest = max(second, last)
    roles = (_ROLES if largest <= _SHORT_RADIX else _LONG_ROLES)[columns]
    numbers = _SLOT_NUMBERS // plan.points if cluster > 1 else columns // (first * largest)
    longest = max(1, numbers)
    unit = UNITS[component][1]
    most = min(_MAX_DEPTH, _RING_BYTES * cluster // (plan.points * unit))
    sizes = (
        (batch, depth) for batch in range(longest, (longest - 1) // 2, -1)
        for depth in range(most, 1, -1) if lcm(plan.taps, batch, depth) <= _LONGEST_TURN
    )  # fmt: skip
    batch, depth = next(sizes, (0, 0))
    found = SpecializedPlan(
        plan.points, plan.taps, plan.phases, plan.frames, plan.real, (first, second, last), batch,
        WARPGROUP, 1, 2 * WARPGROUP // columns, unit, depth,
        max(3, roles[0] + _SPARE_SLOTS) if cluster == 1 else 2 * roles[0], *roles,
        cluster=cluster,
    )  # fmt: skip
    return found if is_legal(check_specialized_plan, found, arch) else None


@lru_cache(maxsize=64)
def specialized_tables(plan: SpecializedPlan) -> Array:
    """Return the twiddles of a plan's kernel, complex64.

    They are those of `twiddle_tables`, or where a thread keeps them of the last stage's levels in
    place of the second ones.

    Halves of h numbers, h = 1, 2, ..., R2 / 2, have t^(R2 / 2h) W_2h^k with t = W_P^(k1), of each
    (k, k1): k to h / 2, since the others are these times -i.
    """
    if not plan.keeps_twiddles:
        return twiddle_tables(plan)
    first, second, last = plan.radices
    lines = np.arange(second)
    found = [roots(np.outer(np.arange(1, first), np.arange(plan.columns)), plan.points).ravel()]
    half = 1
    while half < last:
        numbers = lines + second * np.arange(max(1, half // 2))[:, None]
        found.append(roots(numbers, 2 * half * second).ravel())
        half *= 2
    return np.concatenate(found).astype(np.complex64)


def specialized_name(plan: SpecializedPlan, component: str) -> str:
    """Return the name of the kernel of a plan, for samples of components of a type."""
    return f"sm90_{kernel_name(plan, component)}"


def specialized_source(plan: SpecializedPlan, component: str) -> str:
    """Return the CUDA C++ of the kernel."""
    roles = listed(
        plan.turn, plan.depth, plan.slots, plan.transform_groups, plan.filter_registers,
        plan.transform_registers, plan.arrive_per_lane, plan.cluster,
    )  # fmt: skip
    kernel = f"SpecializedKernel<kPlan, kRoles, Component::{UNITS[component][0]}>"
    return (
        '#include "channelise/sm90_kernel.cuh"\n'
        f"{size_check('ChanneliseArguments', KERNEL_ARGUMENTS)}"
        f"constexpr ChannelisePlan kPlan = {{{members(plan)}}};\n"
        f"constexpr Specialization kRoles = {{{roles}}};\n"
        f"using Kernel = {kernel};\n"
        f"static_assert(Kernel::kThreads == {plan.block_threads} &&\n"
        f"              Kernel::kSharedBytes == {plan.shared_bytes});\n"
        + kernel_entry(
            specialized_name(plan, component),
            "ChanneliseArguments",
            "Kernel::run(args);",
            plan.block_threads,
            plan.blocks,
            cluster=plan.cluster,
        )
    )
