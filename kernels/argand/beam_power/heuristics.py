"""The plan of one form of beam power, and the kernels of a plan. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.beam_power.few_beams_heuristics import choose_few_beams_plan, takes_few_beams
from argand.beam_power.few_beams_plan import (
    FewBeamsPlan,
    check_few_beams_plan,
    few_beams_kernel_name,
    few_beams_source,
    few_beams_tiles,
)
from argand.beam_power.int8_plan import (
    Int8BeamPowerPlan,
    check_int8_plan,
    choose_int8_plan,
    int8_kernel_name,
    int8_pack_name,
    int8_pack_source,
    int8_power_source,
    int8_rows_of_k,
)
from argand.beam_power.plan import (
    DEPTH,
    LARGEST_GROUP,
    ROW_TILE,
    SAMPLE_BYTES,
    BeamPowerPlan,
    Samples,
    TimeTiles,
    beam_power_source,
    check_plan,
    choose_plan,
    kernel_name,
    pack_name,
    pack_source,
    time_tiles,
)
from argand.beam_power.problem import EXACT, BeamPowerProblem
from argand.beam_power.sm90_plan import (
    LARGEST_WGMMA_GROUP,
    WEIGHT_ROW_BYTES,
    WGMMA_TIMES,
    WgmmaBeamPowerPlan,
    check_wgmma_plan,
    choose_wgmma_plan,
    rows_of_k,
    wgmma_kernel_name,
    wgmma_pack_name,
    wgmma_pack_source,
    wgmma_power_source,
)
from argand.device import Arch, Device
from argand.precision import Precision
from argand.runtime.plan import WGMMA_TARGET, PlanError

AnyPlan = BeamPowerPlan | WgmmaBeamPowerPlan | Int8BeamPowerPlan | FewBeamsPlan

_VECTOR = 16
"""Bytes of an access, by which strides of aligned samples are divisible."""
_FRAGMENT_BYTES = 32 * 16
"""Bytes of one MMA fragment: a row tile and one mma_k, in each complex part and term."""
_FEW_BEAMS = 32
"""Beams of two polarizations up to which mma.sync, whose blocks are smaller, goes before wgmma."""
_FILLING = 0.5
"""Time in which a block fills its ring, in tiles."""


@dataclass(frozen=True)
class KernelForm:
    """A call for operands at any address.

    Attributes:
        problem: the sizes.
        precision: at which the kernel computes (`gpu.form_of`).
        samples: how they lie in memory, contiguous along time.
        weights_batched: whether each product has weights of its own.
        stride_antenna, stride_batch: strides of samples, in complex numbers.
        aligned: whether samples begin at 16 bytes.
        plan: whose sizes are taken, None for the default.
    """

    problem: BeamPowerProblem
    precision: Precision
    samples: Samples
    weights_batched: bool
    stride_antenna: int
    stride_batch: int
    aligned: bool
    plan: AnyPlan | None = None


@dataclass(frozen=True)
class Kernels:
    """The kernels of a plan, and what their arguments and memory depend on. One may not pack.

    ``fragments_k`` is that of `WeightArguments`, ``fragment_bytes`` what 16 beams of a matrix take,
    ``start`` the time before a block's first tile, in tiles.
    """

    pack: tuple[str, str] | None
    power: tuple[str, str]
    shared_bytes: int
    blocks: int
    fragments_k: int
    fragment_bytes: int
    start: float = _FILLING


def plan_beam_power(form: KernelForm, device: Device) -> tuple[AnyPlan, TimeTiles]:
    """Return the plan of a form, and how its tiles lie along time."""
    plan = form.plan or _chosen(form, device)
    if isinstance(plan, FewBeamsPlan):
        return plan, few_beams_tiles(plan.times, form.problem.integrate)
    largest = LARGEST_GROUP[form.samples]
    if not isinstance(plan, BeamPowerPlan):
        largest = LARGEST_WGMMA_GROUP
    tiles = time_tiles(plan.times, form.problem.integrate, form.samples, largest)
    item = SAMPLE_BYTES[form.samples]
    strides = (form.stride_antenna, form.stride_batch)
    aligned = (
        tiles.aligned and form.aligned and all(stride * item % _VECTOR == 0 for stride in strides)
    )
    return replace(plan, group=tiles.group, aligned=aligned), tiles


def _chosen(form: KernelForm, device: Device) -> AnyPlan:
    """Return wgmma's plan on Hopper where there is one, else mma.sync's.

    Raises PlanError where exact beams have none (`takes_exact`).
    """
    problem, samples, arch = form.problem, form.samples, device.require_arch()
    if form.precision == EXACT:
        plan = _exact_plan(problem, arch)
        if plan is None:
            raise PlanError(
                f"exact beams of {problem.antennas} antennas have no plan on {arch.target}"
            )
        return plan
    if takes_few_beams(problem, form.precision, samples, arch):
        return choose_few_beams_plan(problem, samples, device)
    found = None
    # mma.sync has smaller blocks for two polarizations and few beams.
    many = problem.polarizations == 1 or problem.beams > _FEW_BEAMS
    if many and arch.target == WGMMA_TARGET:
        tiles = time_tiles(WGMMA_TIMES, problem.integrate, samples, LARGEST_WGMMA_GROUP)
        found = choose_wgmma_plan(
            form.precision, samples, tiles.group, problem.beams, problem.antennas, True, arch,
            problem.polarizations,
        )  # fmt: skip
    return found or choose_plan(
        form.precision, samples, problem.polarizations, 1, problem.beams, True, arch
    )


def takes_exact(problem: BeamPowerProblem, arch: Arch) -> bool:
    """Return whether a kernel computes exact beams of a problem."""
    return problem.detect == "power" and _exact_plan(problem, arch) is not None


def _exact_plan(problem: BeamPowerProblem, arch: Arch) -> Int8BeamPowerPlan | None:
    tiles = time_tiles(WGMMA_TIMES, problem.integrate, "int8", LARGEST_WGMMA_GROUP)
    return choose_int8_plan(tiles.group, problem.beams, problem.antennas, True, arch)


def kernels_of(plan: AnyPlan, form: KernelForm, arch: Arch) -> Kernels:
    """Return the kernels of a plan. Raises PlanError where they cannot be launched."""
    precision, antennas = form.precision, form.problem.antennas
    if isinstance(plan, FewBeamsPlan):
        check_few_beams_plan(plan, antennas, arch)
        return Kernels(
            None, (few_beams_source(plan, precision), few_beams_kernel_name(plan, precision)),
            plan.shared_bytes(antennas), plan.blocks, 0, 0, _FILLING + plan.beams / plan.times,
        )  # fmt: skip
    if isinstance(plan, Int8BeamPowerPlan):
        check_int8_plan(plan, antennas, arch)
        rows = int8_rows_of_k(antennas)
        fragments = rows * 2 * ROW_TILE * WEIGHT_ROW_BYTES
        weights = fragments // ROW_TILE * plan.beams
        return Kernels(
            (int8_pack_source(plan), int8_pack_name(plan)),
            (int8_power_source(plan), int8_kernel_name(plan)),
            plan.shared_bytes(antennas), plan.blocks, rows, fragments,
            _FILLING + weights / (antennas * plan.times * SAMPLE_BYTES["int8"]),
        )  # fmt: skip
    if isinstance(plan, WgmmaBeamPowerPlan):
        check_wgmma_plan(plan, precision, antennas, arch)
        rows = rows_of_k(antennas, form.samples, precision)
        fragments = rows * 2 * precision.terms * ROW_TILE * WEIGHT_ROW_BYTES
        # Weights are copied to shared memory at the rate of a tile's samples.
        weights = fragments // ROW_TILE * plan.beams
        samples = antennas * plan.times * SAMPLE_BYTES[form.samples]
        return Kernels(
            (wgmma_pack_source(plan, precision), wgmma_pack_name(plan, precision)),
            (wgmma_power_source(plan, precision), wgmma_kernel_name(plan, precision)),
            plan.shared_bytes(antennas, precision), plan.blocks, rows, fragments,
            _FILLING + (0 if plan.weight_stages else weights / samples),
        )  # fmt: skip
    check_plan(plan, precision, arch)
    padded = -(-antennas // DEPTH[form.samples]) * DEPTH[form.samples]
    fragments = padded // precision.operand.mma_k
    return Kernels(
        (pack_source(precision), pack_name(precision)),
        (beam_power_source(plan, precision), kernel_name(plan, precision)),
        plan.shared_bytes, plan.blocks, fragments,
        fragments * 2 * precision.terms * _FRAGMENT_BYTES,
    )  # fmt: skip
