"""The kernel of a few beams by fp32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.beam_power.plan import BEAM_POWER_ARGUMENTS, Samples, TimeTiles
from argand.device import Arch
from argand.multiprocessor import RESERVED_BYTES, WARP
from argand.precision import Precision
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError

MAX_FEW_BEAMS = 16
"""Beams whose products by fp32 take less time than those of two terms on tensor cores."""
MAX_PART_ANTENNAS = 512
"""Antennas of a part up to which sums keep the bound of two terms, whose sums are promoted."""
LANE_TIMES, UNROLL = 2, 4
"""Samples of a tile that a thread has, and antennas on their way to it, of the usual plan."""


@dataclass(frozen=True)
class FewBeamsPlan:
    """A plan of the kernel of a few beams.

    Attributes:
        beams: beams of a block, an even number: all that there are.
        parts: parts of the antennas.
        unroll: antennas whose samples are on their way to a thread.
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
        samples: how samples lie in memory.
        polarizations: 2 for Stokes parameters, else 1.
        warps: warps of each part of each polarization.
        lane_times: samples of a tile that a thread has.
    """

    beams: int
    parts: int = 2
    unroll: int = UNROLL
    blocks: int = 5
    samples: Samples = "complex64"
    polarizations: int = 1
    warps: int = 2
    lane_times: int = LANE_TIMES

    @property
    def times(self) -> int:
        """Samples of a tile."""
        return self.warps * WARP * self.lane_times

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.polarizations * self.parts * self.warps * WARP

    def shared_bytes(self, antennas: int) -> int:
        """Return dynamic shared memory of a block: beams of each part, and weights."""
        groups = self.polarizations * self.parts
        sums = self.beams * self.times * (4 if groups == 1 else 8 * groups)
        return sums + 8 * self.polarizations * self.beams * antennas


def check_few_beams_plan(plan: FewBeamsPlan, antennas: int, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if antennas > MAX_PART_ANTENNAS * plan.parts:
        raise PlanError(f"a part must have at most {MAX_PART_ANTENNAS} antennas, got {antennas}")
    if plan.beams not in range(2, MAX_FEW_BEAMS + 1, 2) or plan.polarizations not in (1, 2):
        raise PlanError(
            f"beams must be even and at most {MAX_FEW_BEAMS}, polarizations 1 or 2, got {plan}"
        )
    if plan.parts not in (1, 2, 4, 8) or min(plan.unroll, plan.warps, plan.lane_times) < 1:
        raise PlanError(
            f"parts must be 1, 2, 4 or 8, unroll, warps and lane_times 1 or more, got {plan}"
        )
    needed = plan.blocks * (plan.shared_bytes(antennas) + RESERVED_BYTES)
    if needed > arch.shared_bytes + RESERVED_BYTES:
        raise PlanError(f"{plan} takes {needed} bytes of shared memory")


def few_beams_tiles(times: int, integrate: int) -> TimeTiles:
    """Return how bins lie in tiles of ``times`` samples, which begin at any address."""
    if integrate <= times:
        return TimeTiles(times // integrate, 1, 0, 1, False)
    slices = -(-integrate // times)
    return TimeTiles(1, slices, -(-integrate // slices), 1, False)


def few_beams_kernel_name(plan: FewBeamsPlan, precision: Precision) -> str:
    """Return the name of the kernel."""
    return (
        f"beam_power_fp32_{_operand(plan, precision)}_{plan.samples}_{plan.beams}x{plan.times}"
        f"_w{plan.warps}_p{plan.polarizations}_k{plan.parts}_u{plan.unroll}_b{plan.blocks}"
    )


def _operand(plan: FewBeamsPlan, precision: Precision) -> str:
    """Return the format of samples of 16 bits; all others are read alike at every precision."""
    return precision.operand.name if plan.samples == "half" else "exact"


def few_beams_source(plan: FewBeamsPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the kernel."""
    kernel = (
        f"FewBeamsKernel<Samples::{plan.samples}, Operand::{_operand(plan, precision)}, "
        f"{plan.polarizations}, {plan.beams}, {plan.parts}, {plan.warps}, {plan.lane_times}, "
        f"{plan.unroll}>"
    )
    return (
        '#include "beam_power/few_beams_kernel.cuh"\n'
        f"{size_check('BeamPowerArguments', BEAM_POWER_ARGUMENTS)}"
        f"using Kernel = {kernel};\n"
        f"static_assert(Kernel::kSharedBytes == {plan.shared_bytes(0)} &&\n"
        f"              Kernel::kThreads == {plan.threads} &&\n"
        f"              Kernel::kTileTimes == {plan.times});\n"
        + kernel_entry(
            few_beams_kernel_name(plan, precision), "BeamPowerArguments", "Kernel::run(args);",
            plan.threads, plan.blocks,
        )
    )  # fmt: skip
