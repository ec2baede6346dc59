"""Kernels of beam power by wgmma: plans and sources. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.beam_power.plan import (
    BEAM_POWER_ARGUMENTS,
    DEPTH,
    PADDING,
    ROW_TILE,
    SAMPLE_BYTES,
    WEIGHT_ARGUMENTS,
    Samples,
    check_operands,
)
from argand.device import Arch
from argand.multiprocessor import RESERVED_BYTES, WARPGROUP
from argand.precision import Precision
from argand.runtime.compile.cpp import listed, operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_function
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import (
    WGMMA_TARGET,
    PlanError,
    is_legal,
    require_precision,
)

LARGEST_WGMMA_GROUP = 16
"""Samples of a warp, whose sums need no shared memory."""
WGMMA_TIMES = 64
"""Samples of a tile."""
NARROWEST = 32
"""Fewest beams of a block: eight lanes that share a sum over 16 samples each keep those of one."""
PROMOTED_ANTENNAS = 64
"""Antennas of a partial sum of two terms (`kPromotedStages` of both kernels)."""
WEIGHT_ROW_BYTES = 128
"""Bytes of a row of a beam's weights in shared memory (`kWeightRowBytes`)."""


@dataclass(frozen=True)
class WgmmaBeamPowerPlan:
    """A plan of the kernel of wgmma for beam power.

    Attributes:
        samples: how samples lie in memory.
        group: samples that a warp sums before shared memory, a power of two that divides a bin.
        beams: beams of a block, 32, 64 or 128; all of its warpgroups have them.
        warpgroups: warpgroups of a block, each with tiles of its own; two alternate (ping-pong).
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
        stages: stages of the ring of samples.
        aligned: whether samples are copied by 16 bytes.
        polarizations: 2 for Stokes parameters, else 1.
        promoted: whether sums of `PROMOTED_ANTENNAS` are added in registers, as two terms need.
        weight_stages: rows of k in shared memory at a time; 0 where all weights are.
    """

    samples: Samples
    group: int
    beams: int = 64
    warpgroups: int = 1
    blocks: int = 4
    stages: int = 4
    aligned: bool = True
    polarizations: int = 1
    promoted: bool = False
    weight_stages: int = 0

    @property
    def times(self) -> int:
        """Samples of a tile, which is a warpgroup's."""
        return WGMMA_TIMES

    @property
    def threads(self) -> int:
        """Threads of a block; where weights come in turn, a warpgroup more copies them."""
        return WARPGROUP * (self.warpgroups + (self.weight_stages > 0))

    @property
    def pipelined(self) -> bool:
        """Whether a thread has registers for the samples of two stages."""
        return self.blocks * self.threads <= 384

    def shared_bytes(self, antennas: int, precision: Precision) -> int:
        """Return dynamic shared memory of a block: alignment, weights, rings, sums of groups."""
        row = self.times * SAMPLE_BYTES[self.samples] + PADDING
        ring = self.stages * DEPTH[self.samples] * row
        rows = self.weight_stages or rows_of_k(antennas, self.samples, precision)
        weights = rows * 2 * precision.terms * self.beams * WEIGHT_ROW_BYTES
        outputs = 4 if self.polarizations == 2 else 1
        sums = outputs * self.beams * (self.times // self.group) * 4
        resident = 1 if self.weight_stages else self.polarizations
        return 1024 + resident * weights + self.warpgroups * (ring + sums)


def rows_of_k(antennas: int, samples: Samples, precision: Precision) -> int:
    """Return how many rows of 128 bytes hold a beam's weights, for whole stages of antennas."""
    padded = -(-antennas // DEPTH[samples]) * DEPTH[samples]
    return -(-padded * precision.operand.bytes // WEIGHT_ROW_BYTES)


def check_wgmma_plan(
    plan: WgmmaBeamPowerPlan, precision: Precision, antennas: int, arch: Arch
) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    require_precision(precision, arch)
    check_operands(plan.samples, precision)
    if arch.target != WGMMA_TARGET:
        raise PlanError(f"wgmma needs {WGMMA_TARGET}, got {arch.target}")
    if plan.beams not in (32, 64, 128) or plan.warpgroups not in (1, 2) or plan.stages < 2:
        raise PlanError(
            f"beams must be 32, 64 or 128, warpgroups 1 or 2, stages 2 or more, got {plan}"
        )
    # Two terms take as many registers again: rows of both, and sums that are promoted.
    most = 128 // precision.terms
    if plan.polarizations not in (1, 2) or plan.polarizations * plan.beams > most:
        raise PlanError(f"beams of all polarizations must be at most {most}, got {plan}")
    if precision.terms > 1 and not plan.pipelined:
        raise PlanError(f"two terms take the registers of 384 threads at most, got {plan}")
    if plan.promoted != (precision.terms > 1 and antennas > PROMOTED_ANTENNAS):
        raise PlanError(f"sums of two terms are promoted above {PROMOTED_ANTENNAS}, got {plan}")
    if plan.weight_stages and (plan.warpgroups, plan.blocks) != (2, 1):
        raise PlanError(f"weights come in turn to two warpgroups of one block, got {plan}")
    if plan.weight_stages and DEPTH[plan.samples] * precision.operand.bytes > WEIGHT_ROW_BYTES // 2:
        raise PlanError(f"a row of k must have two stages of antennas, got {plan}")
    if plan.group not in (1, 2, 4, 8, 16):
        raise PlanError(f"group must be a power of two up to 16, got {plan.group}")
    barriers = 16 * plan.weight_stages
    needed = plan.blocks * (plan.shared_bytes(antennas, precision) + barriers + RESERVED_BYTES)
    if needed > arch.shared_bytes + RESERVED_BYTES or plan.blocks * plan.threads > 512:
        raise PlanError(f"{plan} takes {needed} bytes of shared memory, or too many registers")


def choose_wgmma_plan(
    precision: Precision, samples: Samples, group: int, beams: int, antennas: int, aligned: bool,
    arch: Arch, polarizations: int = 1,
) -> WgmmaBeamPowerPlan | None:  # fmt: skip
    """Return the plan for a precision, samples, beams and antennas; None without one.

    Blocks of a multiprocessor multiply while others round and detect. More than 64 beams are two
    warpgroups' that share the weights, so that samples are read half as often; so are 64 beams of
    two polarizations, which have as many accumulators, and two terms. Weights that do not fit come
    in turn, for more than 32 beams.
    """
    promoted = precision.terms > 1 and antennas > PROMOTED_ANTENNAS
    weights = rows_of_k(antennas, samples, precision) * 2 * 128 * WEIGHT_ROW_BYTES
    large = weights > arch.shared_bytes // 2
    for width, warpgroups, blocks, weight_stages in _shapes(precision.terms, polarizations, large):
        # Pairs of int8, which are few bytes, do not wait for memory.
        least = 64 if samples == "int8" else NARROWEST
        if (width > least and beams <= width // 2) or width < least // precision.terms:
            continue
        for stages in _depths(width, blocks):
            plan = WgmmaBeamPowerPlan(
                samples=samples, group=group, beams=width, warpgroups=warpgroups, blocks=blocks,
                stages=stages, aligned=aligned, polarizations=polarizations, promoted=promoted,
                weight_stages=weight_stages,
            )  # fmt: skip
            if is_legal(check_wgmma_plan, plan, precision, antennas, arch):
                return plan
    return None


def _shapes(terms: int, polarizations: int, large: bool) -> tuple[tuple[int, int, int, int], ...]:
    """Return beams and warpgroups of a block, blocks of a multiprocessor, rows of k; best first.

    ``large`` says that the weights of 128 beams at one term take more than half of the shared
    memory: then they come in turn.
    """
    if polarizations == 2:
        return ((64 // terms, 2, 1, 0), (64 // terms, 2, 1, 2))
    if terms == 2:
        return ((64, 2, 1, 0), (64, 2, 1, 2), (32, 2, 1, 0))
    widest = (128, 2, 1, 2 if large else 0)
    return (
        widest, (64, 1, 4, 0), (64, 1, 3, 0), (64, 1, 2, 0), (64, 2, 1, 0), (64, 2, 1, 2),
        (NARROWEST, 1, 3, 0), (NARROWEST, 1, 2, 0), (NARROWEST, 2, 1, 2),
    )  # fmt: skip


def _depths(width: int, blocks: int) -> tuple[int, ...]:
    """Return how many stages rings of samples may have, the best first.

    Few beams wait for samples: their blocks share a multiprocessor where rings are deep.
    """
    if width > NARROWEST:
        return (4, 3, 2)
    return {3: (4,), 2: (6,)}.get(blocks, (6, 4, 3, 2))


def wgmma_kernel_name(plan: WgmmaBeamPowerPlan, precision: Precision) -> str:
    """Return the name of the kernel that computes the power."""
    streamed = f"_r{plan.weight_stages}" if plan.weight_stages else ""
    return (
        f"sm90_beam_power_{precision.symbol}_{plan.samples}_{plan.beams}x{plan.times}{streamed}"
        f"_w{plan.warpgroups}_p{plan.polarizations}_g{plan.group}_s{plan.stages}_b{plan.blocks}"
        f"{'' if plan.aligned else '_unaligned'}"
    )


def wgmma_pack_name(plan: WgmmaBeamPowerPlan, precision: Precision) -> str:
    """Return the name of the kernel that packs weights."""
    return f"sm90_beam_power_pack_{precision.symbol}_{plan.beams}"


def wgmma_pack_source(plan: WgmmaBeamPowerPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that packs weights."""
    form = f"{operand_arguments(precision)}, {plan.beams}"
    return (
        '#include "beam_power/sm90_weights.cuh"\n'
        f"{size_check('WeightArguments', WEIGHT_ARGUMENTS)}"
        + kernel_entry(
            wgmma_pack_name(plan, precision), "WeightArguments", f"pack_columns<{form}>(args);", 256
        )
    )


def wgmma_power_source(plan: WgmmaBeamPowerPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that computes the power."""
    operands = operand_arguments(precision), f"Samples::{plan.samples}", plan.polarizations
    flags = precision.scaled, plan.aligned
    if plan.weight_stages:
        header, kernel = "sm90_streamed_kernel", "StreamedBeamPowerKernel"
        sizes = plan.beams, plan.stages, plan.weight_stages, plan.group
        form = listed(*operands, *sizes, *flags, plan.promoted)
    else:
        header, kernel = "sm90_kernel", "WgmmaBeamPowerKernel"
        sizes = plan.beams, plan.warpgroups, plan.stages, plan.group
        form = listed(*operands, *sizes, *flags, plan.pipelined, plan.promoted)
    return (
        '#include "device/warpgroup.cuh"\n'
        f"{wgmma_function(precision.operand, plan.beams)}"
        f'#include "beam_power/{header}.cuh"\n'
        f"{size_check('BeamPowerArguments', BEAM_POWER_ARGUMENTS)}"
        f"using Kernel = {kernel}<{form}>;\n"
        f"static_assert(Kernel::kSharedBytes == "
        f"{plan.shared_bytes(0, precision)} && Kernel::kThreads == {plan.threads} &&\n"
        f"              kRowTile == {ROW_TILE});\n"
        + kernel_entry(
            wgmma_kernel_name(plan, precision),
            "BeamPowerArguments",
            "Kernel::run(args);",
            plan.threads,
            plan.blocks,
        )
    )
