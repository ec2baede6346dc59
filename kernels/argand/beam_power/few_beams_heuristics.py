"""The choice of a few beams by fp32, and their plan. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from argand.beam_power.few_beams_plan import (
    LANE_TIMES,
    MAX_FEW_BEAMS,
    UNROLL,
    FewBeamsPlan,
    check_few_beams_plan,
    few_beams_tiles,
)
from argand.beam_power.plan import DEPTH, SAMPLE_BYTES, Samples
from argand.beam_power.problem import BeamPowerProblem
from argand.beam_power.sm90_plan import WGMMA_TIMES
from argand.device import Arch, Device
from argand.multiprocessor import REGISTERS, RESERVED_BYTES, registers
from argand.precision import Precision
from argand.runtime.plan import is_legal

_MAX_BEAMS_OF_ONE_TERM = {"complex64": 8, "half": 8, "int8": 12}
"""Most beams of one term, by samples: those of int8 take tensor cores longest."""
_MAX_HALF_BEAMS = 4
"""Most beams of the power of halves where bins fill `_FULL_TILES` of the tiles of wgmma."""
_FULL_TILES = 0.75
"""Fraction of the tiles of wgmma that bins fill then."""
_PARTS = (1, 2, 4)
"""Numbers of parts of the antennas."""
_MIN_ANTENNAS = 64
"""Fewest antennas of each of several parts."""
_WARPS = (2, 3, 4, 5)
"""Warps of each part."""
_USUAL = ((LANE_TIMES, UNROLL),)
_LOADS = (*_USUAL, (2, 8), (1, 8))
"""Samples of a thread, and antennas on their way to it: more bytes need fewer tiles to arrive."""
_MIN_REGISTERS = 64
"""Fewest registers of a thread."""
_OTHER_REGISTERS = 20
"""Registers beside those of beams and samples."""
_MORE_LOADS = 20
"""Registers for the addresses of more loads of complex64."""
_MORE_WIDENED = 8
"""Registers for the addresses of more loads of other samples."""
_ENOUGH = 0.95
"""Part of the registers without which threads spill some: the number is an estimate."""
_LATENCY = 700.0
"""Nanoseconds until a load arrives."""
_BYTES = 42.0
"""Bytes a nanosecond of a multiprocessor."""
_ROW_BYTES = 200
"""Bytes that an antenna's samples in a tile take besides their own."""
_PRODUCTS = 33.0
"""Complex multiply-adds a nanosecond of a multiprocessor."""
_BUSY_THREADS = 150
"""Threads that reach this rate."""
_TILE = 2200.0
"""Nanoseconds of each tile."""
_EXCHANGE = 0.03
"""Nanoseconds of each beam and sample that a group exchanges."""
_DETECTION = 0.21
"""Nanoseconds of each beam and sample that is detected and added up."""
_ALIKE = 1.01
"""Plans within it of the least estimate are alike; that of most threads a block is taken."""


@lru_cache(maxsize=256)
def takes_few_beams(
    problem: BeamPowerProblem, precision: Precision, samples: Samples, arch: Arch
) -> bool:
    """Return whether fp32 computes a problem at a precision.

    Tensor cores multiply more beams at one term in less time, unless antennas do not fill a stage
    of samples in shared memory, which are 16 bits or less there.
    """
    most = MAX_FEW_BEAMS
    if precision.terms == 1 and not precision.exact_operands:
        filled = samples == "complex64" or problem.antennas >= DEPTH[samples]
        most = _MAX_BEAMS_OF_ONE_TERM[samples] if filled else MAX_FEW_BEAMS
        if filled and (samples, problem.detect) == ("half", "power"):
            full = _filled_lanes(problem, WGMMA_TIMES) >= _FULL_TILES
            most = _MAX_HALF_BEAMS if full else most
    return problem.beams <= most and bool(_plans(problem, samples, arch, _USUAL))


@lru_cache(maxsize=256)
def choose_few_beams_plan(
    problem: BeamPowerProblem, samples: Samples, device: Device
) -> FewBeamsPlan:
    """Return the plan of least estimated time of a problem that `takes_few_beams`."""
    return fastest(
        _plans(problem, samples, device.require_arch(), _LOADS), problem, device.sm_count
    )


def fastest(
    plans: Sequence[FewBeamsPlan], problem: BeamPowerProblem, sm_count: int
) -> FewBeamsPlan:
    """Return the plan of least estimated time, of those alike that of most threads per block."""
    estimates = [estimated_nanoseconds(plan, problem, sm_count) for plan in plans]
    most = _ALIKE * min(estimates)
    alike = [plan for plan, time in zip(plans, estimates, strict=True) if time <= most]
    return max(alike, key=lambda plan: plan.threads)


def estimated_nanoseconds(plan: FewBeamsPlan, problem: BeamPowerProblem, sm_count: int) -> float:
    """Return the nanoseconds of a plan, by times on an H200 (docs/experiments).

    The blocks of a multiprocessor share its rates of memory and products, but each waits for the
    samples that its own threads load; what takes about as long adds up in part. As many tiles as
    there are blocks run at a time.
    """
    tiles = few_beams_tiles(plan.times, problem.integrate)
    count = problem.batch * -(-problem.bins // tiles.bins) * tiles.slices
    groups = plan.polarizations * plan.parts
    item, rows = SAMPLE_BYTES[plan.samples], plan.polarizations * problem.antennas
    row = problem.batch * problem.bins * problem.integrate / max(1, count) * item
    beam_times = plan.beams * plan.times
    products = rows * beam_times / _PRODUCTS
    outputs = 4 if plan.polarizations == 2 else 1
    after = _TILE + _DETECTION * outputs * beam_times
    if groups > 1:
        after += _EXCHANGE * groups * beam_times
    loaded = plan.threads * plan.lane_times * plan.unroll * item
    alone = max(_LATENCY * rows * row / loaded, products * _BUSY_THREADS / plan.threads)

    def together(blocks: int) -> float:
        memory = blocks * rows * (row + _ROW_BYTES) / _BYTES
        return math.hypot(alone, memory, blocks * products) + after

    full, rest = divmod(count / sm_count, plan.blocks)
    return full * together(plan.blocks) + (together(math.ceil(rest)) if rest else 0.0)


def _filled_lanes(problem: BeamPowerProblem, times: int) -> float:
    """Return the fraction of the tiles' samples that belong to a bin."""
    tiles = few_beams_tiles(times, problem.integrate)
    count = -(-problem.bins // tiles.bins) * tiles.slices
    return problem.bins * problem.integrate / max(1, count * times)


def _plans(
    problem: BeamPowerProblem, samples: Samples, arch: Arch, loads: Sequence[tuple[int, int]]
) -> list[FewBeamsPlan]:
    """Return the legal plans whose threads hold half of the registers or more.

    Fewer do not read samples at the rate of memory.
    """
    found = []
    width = problem.beams + problem.beams % 2
    for parts, warps, (lane_times, unroll) in itertools.product(_PARTS, _WARPS, loads):
        if parts > 1 and problem.antennas < parts * _MIN_ANTENNAS:
            continue
        plan = FewBeamsPlan(
            beams=width, parts=parts, unroll=unroll, blocks=1, samples=samples,
            polarizations=problem.polarizations, warps=warps, lane_times=lane_times,
        )  # fmt: skip
        plan = replace(plan, blocks=_blocks(plan, problem.antennas, arch))
        held = plan.blocks and _held(plan) >= 0.5
        if held and is_legal(check_few_beams_plan, plan, problem.antennas, arch):
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
    sums = 2 * plan.beams * plan.lane_times
    words, more = plan.unroll * plan.lane_times, plan.unroll > UNROLL
    if plan.samples == "complex64":
        words = 2 * words + (_MORE_LOADS if more else 0)
        sums += sums // 2 if more else sums
    else:  # widened to fp32 as they are read
        words = max(24 + words, 8 + 3 * words) + (_MORE_WIDENED if more else 0)
        sums *= 2
    needed = sums + words + 8 * plan.polarizations + _OTHER_REGISTERS
    return max(_MIN_REGISTERS, -(-needed // 8) * 8)  # registers are given by eights
