"""The kernel of a few beams of complex64 samples by fp32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.beam_power.plan import BEAM_POWER_ARGUMENTS
from argand.device import Arch
from argand.precision import Precision
from argand.runtime.arguments import size_check
from argand.runtime.kernel_entry import kernel_entry
from argand.runtime.plan import PlanError

FEW_BEAMS_TIMES = 128
"""Samples of a tile."""
MOST_FEW_BEAMS = 8
"""Beams whose products by fp32 take less time than their samples take to read."""
_MOST_BEAMS_OF_ONE_TERM = 4
_LEAST_ANTENNAS = 32
"""Antennas of each of two parts, at least: the sums of parts are added at the end of each tile."""
_BLOCKS, _BLOCKS_OF_MOST_BEAMS = 16, 10
"""Blocks of one part of a multiprocessor, as registers of up to 4 beams and of 8 allow; half as
many or fewer do not read samples at the rate of memory."""
MOST_PART_ANTENNAS = 512
"""Antennas of a part up to which sums keep the bound of two terms, whose sums are promoted."""
_PART_THREADS = 64
_BLOCK_BYTES = 1024
"""Bytes of a multiprocessor's shared memory that CUDA reserves for each block."""


@dataclass(frozen=True)
class FewBeamsPlan:
    """A plan of the kernel of a few beams.

    Attributes:
        beams: of a block, 2, 4 or 8: all that there are.
        parts: of the antennas, each of two warps.
        unroll: antennas whose samples a thread reads at a time.
        blocks: least blocks per multiprocessor, which limits a thread's registers.
    """

    beams: int
    parts: int = 2
    unroll: int = 2
    blocks: int = 5

    @property
    def times(self) -> int:
        """Samples of a tile."""
        return FEW_BEAMS_TIMES

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.parts * _PART_THREADS

    def shared_bytes(self, antennas: int) -> int:
        """Return dynamic shared memory of a block: beams of each part, and weights."""
        sums = self.beams * self.times * (4 if self.parts == 1 else 8 * self.parts)
        return sums + 8 * self.beams * antennas


def check_few_beams_plan(plan: FewBeamsPlan, antennas: int, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if antennas > MOST_PART_ANTENNAS * plan.parts:
        raise PlanError(f"a part must have at most {MOST_PART_ANTENNAS} antennas, got {antennas}")
    if plan.beams not in (2, 4, 8) or plan.parts not in (1, 2, 4, 8) or plan.unroll < 1:
        raise PlanError(
            f"beams must be 2, 4 or 8, parts 1, 2, 4 or 8, unroll 1 or more, got {plan}"
        )
    needed = plan.blocks * (plan.shared_bytes(antennas) + _BLOCK_BYTES)
    if needed > arch.shared_bytes + _BLOCK_BYTES:
        raise PlanError(f"{plan} takes {needed} bytes of shared memory")


def choose_few_beams_plan(
    precision: Precision, beams: int, antennas: int, arch: Arch
) -> FewBeamsPlan | None:
    """Return the plan for so many beams and antennas at a precision; None where there is none.

    Tensor cores multiply more than 4 beams at one term in less time than fp32, unless antennas are
    so few that their weights, packed first, and the ends of tiles take longer.
    """
    few = antennas < 2 * _LEAST_ANTENNAS
    one_term = precision.terms == 1 and not precision.exact_operands
    if beams > (_MOST_BEAMS_OF_ONE_TERM if one_term and not few else MOST_FEW_BEAMS):
        return None
    width, parts = 2 if beams <= 2 else 4 if beams <= 4 else 8, 1 if few else 2
    unroll = 4 if (width, parts) == (2, 2) else 2
    most = (_BLOCKS if width < 8 else _BLOCKS_OF_MOST_BEAMS) // parts
    for blocks in range(most, most // 2, -1):
        plan = FewBeamsPlan(width, parts, unroll, blocks)
        try:
            check_few_beams_plan(plan, antennas, arch)
        except PlanError:
            continue
        return plan
    return None


def few_beams_kernel_name(plan: FewBeamsPlan) -> str:
    """Return the name of the kernel."""
    return f"beam_power_fp32_{plan.beams}x{plan.times}_k{plan.parts}_u{plan.unroll}_b{plan.blocks}"


def few_beams_source(plan: FewBeamsPlan) -> str:
    """Return the CUDA C++ of the kernel."""
    return (
        '#include "beam_power/few_beams_kernel.cuh"\n'
        f"{size_check('BeamPowerArguments', BEAM_POWER_ARGUMENTS)}"
        f"using Kernel = FewBeamsKernel<{plan.beams}, {plan.parts}, {plan.unroll}>;\n"
        f"static_assert(Kernel::kSharedBytes == {plan.shared_bytes(0)} &&\n"
        f"              Kernel::kThreads == {plan.threads} &&\n"
        f"              Kernel::kTileTimes == {plan.times});\n"
        + kernel_entry(
            few_beams_kernel_name(plan), "BeamPowerArguments", "Kernel::run(args);", plan.threads,
            plan.blocks,
        )
    )  # fmt: skip
