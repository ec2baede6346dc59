"""Kernels of images: their plans, sources and sizes. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.device import Arch
from argand.multiprocessor import WARP
from argand.precision import TF32, Precision
from argand.runtime.compile.cpp import operand_arguments
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError, is_legal, require_precision

PANEL = 64
"""Antennas of a panel (`kPanelAntennas` of cuda/image/plan.cuh)."""
PANEL_ROWS = 2 * PANEL
_TILE = 16
"""Rows and k of a unit of packed covariances."""
PACK_THREADS = 256
_STATIC_BYTES = 4 << 10
"""Shared memory beside the panels, rounded up."""
# PackArguments and ImageArguments of cuda/image/plan.cuh.
PACK_ARGUMENTS = (
    ("const float2*", "covariances"), ("const uint32*", "largest"), ("uint4*", "fragments"),
    ("float*", "descales"), ("int64", "matrices"), ("int", "parts"),
    ("int", "antennas"), ("int", "row_tiles"),
)  # fmt: skip
IMAGE_ARGUMENTS = (
    ("const uint4*", "fragments"), ("const float*", "descales"), ("const double*", "positions"),
    ("const double*", "scales"), ("const double*", "directions"), ("float*", "power"),
    ("double", "longest_square"), ("int", "images"), ("int", "channels"), ("int", "panels"),
    ("int", "row_tiles"), ("int", "direction_count"), ("int", "splits"),
)  # fmt: skip


@dataclass(frozen=True)
class MmaImagePlan:
    """A plan of the kernel of images.

    Attributes:
        directions: directions of a block, a multiple of 32; a warp makes the weights of 8 of them.
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
    """

    directions: int = 64
    blocks: int = 2

    @property
    def images(self) -> int:
        """Images of a block."""
        return 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.directions // 8 * WARP


def stored_bytes(precision: Precision) -> int:
    """Return the bytes of a weight in a panel: its terms, or fp32 where they are split later."""
    if precision.operand == TF32:
        return 4
    return precision.terms * precision.operand.bytes


def shared_bytes(plan: MmaImagePlan, precision: Precision) -> int:
    """Return the dynamic shared memory of a block: two panels of weights."""
    return 2 * PANEL_ROWS * plan.directions * stored_bytes(precision)


def check_plan(plan: MmaImagePlan, precision: Precision, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    require_precision(precision, arch)
    if precision.operand.ptx is None:
        raise PlanError(f"tensor cores have no operands of {precision.name}")
    if precision.operand.mma_k > _TILE:
        raise PlanError(
            f"images multiply {_TILE} antennas at a time, and an MMA of {precision.operand.name} "
            f"has {precision.operand.mma_k}: use operands of 2 bytes or more"
        )
    if plan.directions not in (32, 64, 128):
        raise PlanError(f"directions must be 32, 64 or 128, got {plan.directions}")
    if plan.blocks < 1 or plan.blocks * plan.threads > 1024:
        raise PlanError(f"blocks of {plan.threads} threads leave too few registers: {plan.blocks}")
    needed = plan.blocks * (shared_bytes(plan, precision) + _STATIC_BYTES)
    if needed > arch.shared_bytes + 1024:
        raise PlanError(f"{plan} takes {needed} bytes of shared memory, more than there are")


def choose_plan(precision: Precision, arch: Arch) -> MmaImagePlan:
    """Return the plan for a precision: two blocks of a multiprocessor where they fit, else one.

    While one block makes weights the other multiplies.
    """
    for blocks in (2, 1):
        plan = MmaImagePlan(64, blocks)
        if is_legal(check_plan, plan, precision, arch):
            return plan
    return MmaImagePlan(32, 1)


def panels_of(antennas: int) -> int:
    """Return how many panels hold ``antennas`` antennas."""
    return -(-antennas // PANEL)


def fragment_bytes(antennas: int, precision: Precision) -> int:
    """Return the bytes of one packed covariance."""
    tiles = row_tiles(antennas)
    return tiles * (tiles + 1) // 2 * _TILE**2 * precision.terms * precision.operand.bytes


def row_tiles(antennas: int) -> int:
    """Return the row tiles of a packed covariance."""
    return panels_of(antennas) * PANEL_ROWS // _TILE


def kernel_name(plan: MmaImagePlan, precision: Precision) -> str:
    """Return the name of the kernel that computes the power."""
    return f"sm80_image_{precision.symbol}_{plan.directions}x{plan.blocks}"


def pack_name(precision: Precision) -> str:
    """Return the name of the kernel that packs covariances."""
    return f"image_pack_{precision.symbol}"


def pack_source(precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that packs covariances."""
    return (
        '#include "image/pack_kernel.cuh"\n'
        f"{size_check('PackArguments', PACK_ARGUMENTS)}"
        + kernel_entry(
            pack_name(precision),
            "PackArguments",
            f"pack_covariance<{operand_arguments(precision)}>(args);",
            PACK_THREADS,
        )
    )


def image_source(plan: MmaImagePlan, precision: Precision) -> str:
    """Return the CUDA C++ of the kernel that computes the power."""
    kernel = f"ImageKernel<{operand_arguments(precision)}, {plan.directions}>"
    return (
        '#include "image/sm80_kernel.cuh"\n'
        f"{size_check('ImageArguments', IMAGE_ARGUMENTS)}"
        f"static_assert({kernel}::kSharedBytes == {shared_bytes(plan, precision)});\n"
        + kernel_entry(
            kernel_name(plan, precision),
            "ImageArguments",
            f"{kernel}::run(args);",
            plan.threads,
            plan.blocks,
        )
    )
