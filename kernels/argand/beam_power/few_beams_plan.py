"""The kernel of a few beams by fp32. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from argand.beam_power.plan import BEAM_POWER_ARGUMENTS, DEPTH, Samples, TimeTiles
from argand.beam_power.problem import BeamPowerProblem
from argand.beam_power.sm90_plan import WGMMA_TIMES
from argand.device import Arch
from argand.multiprocessor import REGISTERS, RESERVED_BYTES, WARP, registers
from argand.precision import Precision
from argand.runtime.arguments import size_check
from argand.runtime.kernel_entry import kernel_entry
from argand.runtime.plan import PlanError

MOST_FEW_BEAMS = 16
"""Beams whose products by fp32 take less time than those of two terms on tensor cores."""
_MOST_BEAMS_OF_ONE_TERM = {"complex64": 8, "half": 8, "int8": 12}
"""The same of one term, by samples: those of int8 take tensor cores longest."""
_MOST_HALF_BEAMS, _FULL_TILES = 4, 0.75
"""The same of the power of halves where bins fill so much of the tiles of wgmma."""
MOST_PART_ANTENNAS = 512
"""Antennas of a part up to which sums keep the bound of two terms, whose sums are promoted."""
_PARTS, _LEAST_ANTENNAS = (1, 2, 4), 64
"""Parts, and antennas of each of several: their sums are added at the end of each tile."""
_USUAL_PARTS = 2
_PARTS_GAIN = 1.1
"""Factor of the usual number of parts: tiles of more parts end later, of fewer begin later."""
_LANE_TIMES = 2
_UNROLL = 4
_WARPS = (2, 3, 4, 5)
"""Warps of each part: where lanes and registers are filled alike, the first."""
_LEAST_REGISTERS, _OTHER_REGISTERS = 64, 20
"""Registers of a thread; those beside beams and samples."""
_ENOUGH = 0.95
"""Part of the registers without which threads spill some: the number is an estimate."""


@dataclass(frozen=True)
class FewBeamsPlan:
    """A plan of the kernel of a few beams.

    Attributes:
        beams: of a block, an even number: all that there are.
        parts: of the antennas.
        unroll: antennas whose samples are on their way to a thread.
        blocks: least blocks per multiprocessor, which limits a thread's registers.
        samples: how samples lie in memory.
        polarizations: 2 for Stokes parameters, else 1.
        warps: of each part of each polarization.
        lane_times: samples of a tile that a thread has.
    """

    beams: int
    parts: int = 2
    unroll: int = _UNROLL
    blocks: int = 5
    samples: Samples = "complex64"
    polarizations: int = 1
    warps: int = _WARPS[0]
    lane_times: int = _LANE_TIMES

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
    if antennas > MOST_PART_ANTENNAS * plan.parts:
        raise PlanError(f"a part must have at most {MOST_PART_ANTENNAS} antennas, got {antennas}")
    if plan.beams not in range(2, MOST_FEW_BEAMS + 1, 2) or plan.polarizations not in (1, 2):
        raise PlanError(
            f"beams must be even and at most {MOST_FEW_BEAMS}, polarizations 1 or 2, got {plan}"
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


@lru_cache(maxsize=256)
def takes_few_beams(
    problem: BeamPowerProblem, precision: Precision, samples: Samples, arch: Arch
) -> bool:
    """Return whether fp32 computes a problem at a precision.

    Tensor cores multiply more beams at one term in less time, unless antennas do not fill a stage
    of samples in shared memory, which are 16 bits or less there.
    """
    most = MOST_FEW_BEAMS
    if precision.terms == 1 and not precision.exact_operands:
        filled = samples == "complex64" or problem.antennas >= DEPTH[samples]
        most = _MOST_BEAMS_OF_ONE_TERM[samples] if filled else MOST_FEW_BEAMS
        if filled and (samples, problem.detect) == ("half", "power"):
            full = _filled_lanes(problem, WGMMA_TIMES) >= _FULL_TILES
            most = _MOST_HALF_BEAMS if full else most
    return problem.beams <= most and bool(_plans(problem, samples, arch))


def choose_few_beams_plan(problem: BeamPowerProblem, samples: Samples, arch: Arch) -> FewBeamsPlan:
    """Return the plan of a problem that `takes_few_beams`, which leaves few lanes without work.

    Of fewer threads each has more of the rates of memory and operations, but not all that others
    would have: their part counts as its square root.
    """
    usual = min(_USUAL_PARTS, max(1, problem.antennas // _LEAST_ANTENNAS))

    def filled(plan: FewBeamsPlan) -> float:
        lanes = _filled_lanes(problem, plan.times)
        return (_PARTS_GAIN if plan.parts == usual else 1) * lanes * math.sqrt(_held(plan))

    return max(_plans(problem, samples, arch), key=filled)


def _filled_lanes(problem: BeamPowerProblem, times: int) -> float:
    """Return the part of the samples of tiles that are of a bin."""
    tiles = few_beams_tiles(times, problem.integrate)
    count = -(-problem.bins // tiles.bins) * tiles.slices
    return problem.bins * problem.integrate / max(1, count * times)


def _plans(problem: BeamPowerProblem, samples: Samples, arch: Arch) -> list[FewBeamsPlan]:
    """Return the legal plans whose threads hold half of the registers or more.

    Fewer do not read samples at the rate of memory.
    """
    found = []
    width = problem.beams + problem.beams % 2
    for parts in _PARTS:
        if parts > 1 and problem.antennas < parts * _LEAST_ANTENNAS:
            continue
        for warps in _WARPS:
            plan = FewBeamsPlan(
                width, parts, _UNROLL, 1, samples, problem.polarizations, warps, _LANE_TIMES
            )
            plan = replace(plan, blocks=_blocks(plan, problem.antennas, arch))
            if plan.blocks and _held(plan) >= 0.5:
                with suppress(PlanError):
                    check_few_beams_plan(plan, problem.antennas, arch)
                    found.append(plan)
    return found


def _blocks(plan: FewBeamsPlan, antennas: int, arch: Arch) -> int:
    """Return the blocks of a multiprocessor whose threads have their registers and memory."""
    memory, needed = arch.shared_bytes + RESERVED_BYTES, _registers(plan)
    most = memory // (plan.shared_bytes(antennas) + RESERVED_BYTES)
    for blocks in range(min(most, REGISTERS // (needed * plan.threads)), 0, -1):
        if registers(blocks * plan.threads) >= _ENOUGH * needed:
            return blocks
    return 0


def _held(plan: FewBeamsPlan) -> float:
    """Return the part of a multiprocessor's registers that its blocks hold."""
    return plan.blocks * plan.threads * _registers(plan) / REGISTERS


def _registers(plan: FewBeamsPlan) -> int:
    """Return the registers with which a thread of a kernel spills none."""
    sums = 4 * plan.beams * plan.lane_times  # twice their numbers
    words = plan.unroll * plan.lane_times * (2 if plan.samples == "complex64" else 1)
    widened = 0 if plan.samples == "complex64" else 24
    needed = sums + words + widened + 8 * plan.polarizations + _OTHER_REGISTERS
    return max(_LEAST_REGISTERS, -(-needed // 8) * 8)  # registers are given by eights


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
