"""Kernels of beam power: their plans, sources and sizes. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from argand.device import Arch
from argand.multiprocessor import RESERVED_BYTES, WARP
from argand.precision import TF32, Precision
from argand.runtime.compile.cpp import listed, operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError, require_precision

Samples = Literal["complex64", "half", "int8"]
"""How a kernel reads samples: complex64, pairs in the operand's 16-bit format, or of int8."""
SAMPLES: tuple[Samples, ...] = get_args(Samples)
SAMPLE_BYTES = {"complex64": 8, "half": 4, "int8": 2}
DEPTH = {"complex64": 16, "half": 32, "int8": 32}
"""Antennas of a stage (`kDepth` of cuda/beam_power/samples.cuh)."""
LARGEST_GROUP = {"complex64": 16, "half": 32, "int8": 32}
"""Samples that the lanes of a warp can sum in registers (8 `kTimes` there)."""
ROW_TILE = 16
PACK_THREADS = 256
_VECTOR = 16
PADDING = 32
"""Bytes between the rows of a stage."""
_SLICE_STEP = 8
"""Slices are a multiple of so many samples: 16 bytes of any type."""
# WeightArguments and BeamPowerArguments of cuda/beam_power/plan.cuh.
WEIGHT_ARGUMENTS = (
    ("const float2*", "weights"), ("uint4*", "fragments"), ("float*", "descales"),
    ("int", "beams"), ("int", "antennas"), ("int", "row_tiles"), ("int", "fragments_k"),
)  # fmt: skip
BEAM_POWER_ARGUMENTS = (
    ("const uint4*", "fragments"), ("const float*", "descales"), ("const void*", "samples"),
    ("float*", "power"), ("int64", "stride_antenna"), ("int64", "stride_batch"),
    *(("int", name) for name in (
        "weights_batched", "antennas", "chunks", "beams", "row_tiles", "columns", "bins",
        "integrate", "tile_bins", "slices", "slice", "tiles", "block_tiles",
    )),
)  # fmt: skip


@dataclass(frozen=True)
class BeamPowerPlan:
    """A plan of the kernel of mma.sync for beam power.

    Attributes:
        samples: how samples lie in memory.
        polarizations: 2 for Stokes parameters, else 1.
        group: samples that lanes sum before shared memory, a power of two that divides a bin.
        warps: warps of a block, of which ``warp_rows`` lie along beams and the others along time.
        row_tiles: tiles of 16 beams of a warp.
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
        stages: stages of the ring of samples.
        aligned: whether samples are copied by 16 bytes.
    """

    samples: Samples
    polarizations: int
    group: int
    warps: int
    warp_rows: int
    row_tiles: int
    blocks: int
    stages: int = 3
    aligned: bool = True

    @property
    def beams(self) -> int:
        """Beams of a block."""
        return self.warp_rows * self.row_tiles * ROW_TILE

    @property
    def times(self) -> int:
        """Samples of a tile."""
        return self.warps // self.warp_rows * WARP

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * WARP

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: the ring, and sums of groups of each output."""
        row = self.times * SAMPLE_BYTES[self.samples] + PADDING
        outputs = 4 if self.polarizations == 2 else 1
        sums = outputs * self.beams * (self.times // self.group) * 4
        return self.stages * DEPTH[self.samples] * row + sums


def check_operands(samples: Samples, precision: Precision) -> None:
    """Raise PlanError where kernels do not multiply samples at a precision."""
    if precision.operand.ptx is None or precision.moduli:
        raise PlanError(f"tensor cores have no operands of {precision.name}")
    if precision.scaled and (precision.terms != 1 or samples == "complex64"):
        raise PlanError(f"samples of {samples} are not scaled, as {precision.name} needs")
    if samples != "complex64" and (precision.operand == TF32 or precision.terms != 1):
        raise PlanError(f"{precision.name} has no operands of {samples}")


def check_plan(plan: BeamPowerPlan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    require_precision(precision, arch)
    check_operands(plan.samples, precision)
    if plan.polarizations not in (1, 2) or plan.warps not in (4, 8):
        raise PlanError(f"polarizations must be 1 or 2 and warps 4 or 8, got {plan}")
    if plan.warps % plan.warp_rows or plan.times * SAMPLE_BYTES[plan.samples] % 128:
        raise PlanError(f"warp_rows must divide warps and leave rows of 128 bytes, got {plan}")
    if plan.row_tiles not in (1, 2) or plan.stages < 2:
        raise PlanError(f"row_tiles must be 1 or 2 and stages 2 or more, got {plan}")
    if plan.group not in (1, 2, 4, 8, 16, 32) or plan.group > LARGEST_GROUP[plan.samples]:
        raise PlanError(
            f"group must be a power of two up to {LARGEST_GROUP[plan.samples]}, got {plan.group}"
        )
    if plan.shared_bytes > arch.shared_bytes:
        raise PlanError(f"{plan} takes {plan.shared_bytes} bytes of shared memory")


def choose_plan(
    precision: Precision, samples: Samples, polarizations: int, group: int, beams: int,
    aligned: bool, arch: Arch,
) -> BeamPowerPlan:  # fmt: skip
    """Return the plan for a precision, samples, and a number of beams.

    Three blocks of a multiprocessor hide each other's waiting. The accumulators of two
    polarizations, or of two terms with what they are promoted to, take the registers of more beams.
    """
    light = polarizations == 1 and precision.terms == 1
    row_tiles, blocks = (2 if light else 1), (3 if polarizations == 1 else 2)
    widest = 4 if samples == "complex64" else 2
    fitting = (n for n in (1, 2, 4) if n * row_tiles * ROW_TILE >= beams)
    warp_rows = min(next(fitting, widest), widest)
    for stages in (4, 3, 2):
        plan = BeamPowerPlan(
            samples=samples, polarizations=polarizations, group=group, warps=4, warp_rows=warp_rows,
            row_tiles=row_tiles, blocks=blocks, stages=stages, aligned=aligned,
        )  # fmt: skip
        if blocks * (plan.shared_bytes + RESERVED_BYTES) <= arch.shared_bytes:
            return plan
    return plan


@dataclass(frozen=True)
class TimeTiles:
    """The layout of tiles along time (`TimeTile` of cuda/beam_power/plan.cuh).

    Attributes:
        bins: bins of a tile; 1 where bins are longer than tiles.
        slices: tiles of a bin, above 1 where it is longer than a tile.
        slice: samples of a slice but the last.
        group: samples that the lanes of a warp sum.
        aligned: whether every tile begins at a multiple of 16 bytes.
    """

    bins: int
    slices: int
    slice: int
    group: int
    aligned: bool


def time_tiles(times: int, integrate: int, samples: Samples, largest: int) -> TimeTiles:
    """Return how bins lie in tiles of ``times`` samples.

    ``largest`` is the most samples of a group. A tile has some bins fewer than fit, at most a
    quarter, where it then begins at 16 bytes.
    """
    item = SAMPLE_BYTES[samples]
    if integrate > times:
        slices = -(-integrate // times)
        part = -(-integrate // (slices * _SLICE_STEP)) * _SLICE_STEP
        return TimeTiles(1, slices, part, largest, integrate * item % _VECTOR == 0)
    most = times // integrate
    fewest = max(1, 3 * most // 4)
    group = min(integrate & -integrate, largest)
    for bins in range(most, fewest - 1, -1):
        if bins * integrate * item % _VECTOR == 0:
            return TimeTiles(bins, 1, 0, group, True)
    return TimeTiles(most, 1, 0, group, False)


def kernel_name(plan: BeamPowerPlan, precision: Precision) -> str:
    """Return the name of the kernel that computes the power."""
    return (
        f"sm80_beam_power_{precision.symbol}_{plan.samples}_{plan.beams}x{plan.times}"
        f"_w{plan.warps}_p{plan.polarizations}_g{plan.group}_s{plan.stages}_b{plan.blocks}"
        f"{'' if plan.aligned else '_unaligned'}"
    )


def pack_name(precision: Precision) -> str:
    """Return the name of the kernel that packs weights."""
    return f"beam_power_pack_{precision.symbol}"


def pack_source(precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that packs weights."""
    return (
        '#include "beam_power/pack_kernel.cuh"\n'
        f"{size_check('WeightArguments', WEIGHT_ARGUMENTS)}"
        + kernel_entry(
            pack_name(precision),
            "WeightArguments",
            f"pack_weights<{operand_arguments(precision)}>(args);",
            PACK_THREADS,
        )
    )


def beam_power_source(plan: BeamPowerPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that computes the power."""
    form = listed(
        operand_arguments(precision), f"Samples::{plan.samples}", plan.polarizations, plan.warps,
        plan.warp_rows, plan.row_tiles, plan.stages, plan.group, precision.scaled, plan.aligned,
    )  # fmt: skip
    return (
        '#include "beam_power/sm80_kernel.cuh"\n'
        f"{size_check('BeamPowerArguments', BEAM_POWER_ARGUMENTS)}"
        f"using Kernel = BeamPowerKernel<{form}>;\n"
        f"static_assert(Kernel::kSharedBytes == {plan.shared_bytes} &&\n"
        f"              Kernel::kThreads == {plan.threads});\n"
        + kernel_entry(
            kernel_name(plan, precision),
            "BeamPowerArguments",
            "Kernel::run(args);",
            plan.threads,
            plan.blocks,
        )
    )
