"""Beam power of complex int8, exact in s32 by wgmma: plans and sources, which need no GPU."""

from __future__ import annotations

from dataclasses import dataclass

from argand.beam_power.plan import (
    BEAM_POWER_ARGUMENTS,
    DEPTH,
    PADDING,
    SAMPLE_BYTES,
    WEIGHT_ARGUMENTS,
)
from argand.beam_power.sm90_plan import WEIGHT_ROW_BYTES, WGMMA_TIMES
from argand.device import Arch
from argand.multiprocessor import RESERVED_BYTES, WARPGROUP
from argand.precision import FP16
from argand.runtime.compile.cpp import listed
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_function, wgmma_s8_rows_function
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import WGMMA_TARGET, PlanError, is_legal

INT8_MAX_ANTENNAS = 65535
"""Antennas whose sums stay below 2^31."""
_SHAPES = ((128, 2, 1), (64, 1, 3), (64, 1, 2), (64, 2, 1))
"""Beams and warpgroups of a block, and blocks of a multiprocessor, the best first."""


@dataclass(frozen=True)
class Int8BeamPowerPlan:
    """A plan of the kernel of complex int8 (``sm90_int8_kernel.cuh``).

    Attributes:
        group: samples that a warp sums before shared memory, a power of two that divides a bin.
        beams: beams of a block, 64 or 128; all of its warpgroups have them.
        warpgroups: warpgroups of a block, each with tiles of its own; two alternate (ping-pong).
        blocks: fewest blocks of a multiprocessor, which limits a thread's registers.
        stages: stages of the ring of samples.
        aligned: whether samples are copied by 16 bytes.
    """

    group: int
    beams: int = 64
    warpgroups: int = 1
    blocks: int = 3
    stages: int = 4
    aligned: bool = True

    @property
    def times(self) -> int:
        """Samples of a tile, which is a warpgroup's."""
        return WGMMA_TIMES

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARPGROUP * self.warpgroups

    def shared_bytes(self, antennas: int) -> int:
        """Return dynamic shared memory of a block: alignment, weights, rings, sums of groups."""
        ring = self.stages * DEPTH["int8"] * (self.times * SAMPLE_BYTES["int8"] + PADDING)
        weights = int8_rows_of_k(antennas) * 2 * self.beams * WEIGHT_ROW_BYTES
        sums = self.beams * (self.times // self.group) * 4
        return 1024 + weights + self.warpgroups * (ring + sums)


def int8_rows_of_k(antennas: int) -> int:
    """Return how many rows of 128 bytes hold a beam's weights."""
    return -(-antennas // WEIGHT_ROW_BYTES)


def check_int8_plan(plan: Int8BeamPowerPlan, antennas: int, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if arch.target != WGMMA_TARGET:
        raise PlanError(f"wgmma of int8 needs {WGMMA_TARGET}, got {arch.target}")
    if antennas > INT8_MAX_ANTENNAS:
        raise PlanError(f"sums in s32 have up to {INT8_MAX_ANTENNAS} antennas, got {antennas}")
    if plan.beams not in (64, 128) or plan.warpgroups not in (1, 2) or plan.stages < 2:
        raise PlanError(f"beams must be 64 or 128, warpgroups 1 or 2, stages 2 or more, got {plan}")
    if plan.group not in (1, 2, 4, 8, 16):
        raise PlanError(f"group must be a power of two up to 16, got {plan.group}")
    taken = plan.blocks * (plan.shared_bytes(antennas) + RESERVED_BYTES)
    most = 384 if plan.beams == 64 else 256  # threads with registers for three accumulators
    if taken > arch.shared_bytes + RESERVED_BYTES or plan.blocks * plan.threads > most:
        raise PlanError(f"{plan} takes {taken} bytes of shared memory, or too many registers")


def choose_int8_plan(
    group: int, beams: int, antennas: int, aligned: bool, arch: Arch
) -> Int8BeamPowerPlan | None:
    """Return the plan for beams and antennas; None without one."""
    for width, warpgroups, blocks in _SHAPES:
        if width > 64 and beams <= 64:
            continue
        for stages in (4, 3, 2):
            plan = Int8BeamPowerPlan(group, width, warpgroups, blocks, stages, aligned)
            if is_legal(check_int8_plan, plan, antennas, arch):
                return plan
    return None


def int8_kernel_name(plan: Int8BeamPowerPlan) -> str:
    """Return the name of the kernel that computes the power."""
    return (
        f"sm90_beam_power_exact_int8_{plan.beams}x{plan.times}_w{plan.warpgroups}_g{plan.group}"
        f"_s{plan.stages}_b{plan.blocks}{'' if plan.aligned else '_unaligned'}"
    )


def int8_pack_name(plan: Int8BeamPowerPlan) -> str:
    """Return the name of the kernel that packs weights."""
    return f"sm90_beam_power_pack_int8_{plan.beams}"


def int8_pack_source(plan: Int8BeamPowerPlan) -> str:
    """Return the CUDA C++ of the kernel that packs weights."""
    return f"{_preamble(plan)}{size_check('WeightArguments', WEIGHT_ARGUMENTS)}" + kernel_entry(
        int8_pack_name(plan), "WeightArguments", f"pack_int8_columns<{plan.beams}>(args);", 256
    )


def int8_power_source(plan: Int8BeamPowerPlan) -> str:
    """Return the CUDA C++ of the kernel that computes the power."""
    form = listed(plan.beams, plan.warpgroups, plan.stages, plan.group, plan.aligned)
    return (
        f"{_preamble(plan)}"
        f"{size_check('BeamPowerArguments', BEAM_POWER_ARGUMENTS)}"
        f"using Kernel = Int8BeamPowerKernel<{form}>;\n"
        f"static_assert(Kernel::kSharedBytes == {plan.shared_bytes(0)} &&\n"
        f"              Kernel::kThreads == {plan.threads});\n"
        + kernel_entry(
            int8_kernel_name(plan),
            "BeamPowerArguments",
            "Kernel::run(args);",
            plan.threads,
            plan.blocks,
        )
    )


def _preamble(plan: Int8BeamPowerPlan) -> str:
    """Return the generated instructions, which the kernel of fp16 has too, and the kernel."""
    return (
        '#include "device/warpgroup.cuh"\n'
        f"{wgmma_function(FP16, plan.beams)}{wgmma_s8_rows_function(plan.beams)}"
        '#include "beam_power/sm90_int8_kernel.cuh"\n'
    )
