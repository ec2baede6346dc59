"""Images on a GPU: our kernel, and blocks of directions through cuBLAS at fp64 and fp32."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Arch, Device, gpu
from argand.image.blocks import as_complex, image_in_blocks, not_hermitian, require_hermitian
from argand.image.few_antennas_plan import (
    FEW_ANTENNAS_ARGUMENTS,
    FewAntennasPlan,
    choose_few_antennas_plan,
    few_antennas_kernel_name,
    few_antennas_source,
)
from argand.image.plan import (
    IMAGE_ARGUMENTS,
    PACK_ARGUMENTS,
    PACK_THREADS,
    PANEL,
    SCAN_KERNEL,
    ImagePlan,
    check_plan,
    choose_plan,
    fragment_bytes,
    image_source,
    kernel_name,
    pack_name,
    pack_source,
    panels_of,
    row_tiles,
    scan_source,
    shared_bytes,
)
from argand.image.problem import HERMITIAN, SPEED_OF_LIGHT, TURN, ImageProblem
from argand.runtime import kernel_trace
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.kernel import BoundKernel
from argand.runtime.layout import device_of
from argand.runtime.loading import PendingKernel
from argand.runtime.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[ImagePlan | FewAntennasPlan] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every image takes this plan."""
_LARGEST_GRID = 2**31 - 1
_PACK_BLOCKS = 16
"""Largest grid of the kernel that packs, in blocks of a multiprocessor; threads loop beyond."""
_WAVES = 4
"""Fewest waves of blocks, where channels can be split to have them."""


def image(problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
    """Return the power of a problem whose arguments are checked, on the GPU that holds ``r``.

    ``x``, ``f`` and ``s`` are as in `image_in_blocks`. Raises ValueError for covariances that are
    not Hermitian, PlanError for a plan override that is not legal, and CompileError where NVRTC
    fails.

    Memory beside the operands: a copy where ``r`` is not contiguous complex64, the power of each
    split of the channels, and beyond few antennas packed covariances, (1 + 64 / antennas)
    2 antennas^2 numbers of the operand for each term.
    """
    with device_of(r, out):
        if problem.precision.exact_operands:
            require_hermitian(r, cupy)
            return image_in_blocks(problem, r, x, f, s, out, cupy)
        target = cupy.empty(problem.shape, problem.dtype) if out is None else out
        if not (target.size and problem.channels and problem.antennas):
            target[...] = 0
            return target
        _computed(problem, r, x, f, s, target, gpu(cupy.cuda.Device().id))
        return target


def _computed(
    problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, target: Any, device: Device
) -> None:
    precision = problem.precision
    plan = PLAN_OVERRIDE.value or _chosen(problem, device.require_arch())
    blocks = -(-problem.directions // plan.directions) * -(-problem.matrices // plan.images)
    target_blocks = _WAVES * plan.blocks * device.sm_count
    splits = min(problem.channels, max(1, -(-target_blocks // blocks)))
    blocks *= splits
    if blocks > _LARGEST_GRID:
        raise ValueError(f"directions and leading axes take {blocks} blocks, too many")
    matrices = problem.matrices * problem.channels
    with np.errstate(over="ignore"):
        given = cupy.ascontiguousarray(as_complex(r), np.complex64)
    scans = cupy.empty((matrices, 3), np.uint32)
    places = np.zeros((PANEL * panels_of(problem.antennas), 3))
    places[: len(x)] = x
    positions = cupy.asarray(places)
    scales = cupy.asarray(problem.sign / TURN * (f / SPEED_OF_LIGHT))
    directions = cupy.ascontiguousarray(cupy.asarray(s), np.float64)
    parts = cupy.empty((splits, *target.shape), np.float32) if splits > 1 else target
    members = {"covariances": given.data.ptr, "scans": scans.data.ptr}
    last = {
        "positions": positions.data.ptr, "scales": scales.data.ptr,
        "directions": directions.data.ptr, "power": parts.data.ptr,
    }  # fmt: skip
    _scan(matrices, problem.antennas, device)(members)
    if isinstance(plan, FewAntennasPlan):
        name = few_antennas_kernel_name(plan)
        power_of = _few_antennas(problem, plan, blocks, splits, device)
        power_of({"covariances": given.data.ptr, **last})
    else:
        name = kernel_name(plan, precision)
        pack, power_of = _launches(problem, plan, blocks, splits, device)
        packed = cupy.empty(matrices * fragment_bytes(problem.antennas, precision), np.uint8)
        descales = cupy.empty(matrices, np.float32)
        fragments = {"fragments": packed.data.ptr, "descales": descales.data.ptr}
        pack({**members, **fragments})
        power_of({**fragments, **last})
    if kernel_trace.watching:
        kernel_trace.note(f"{name}, {splits} splits of channels")
    if parts is not target:
        cupy.sum(parts, axis=0, out=target)
    _require_hermitian(scans, problem.channels)


def _chosen(problem: ImageProblem, arch: Arch) -> ImagePlan | FewAntennasPlan:
    few = choose_few_antennas_plan(problem.antennas, problem.matrices)
    return few or choose_plan(problem.precision, arch)


def _require_hermitian(scans: Any, channels: int) -> None:
    """Raise ValueError as `blocks.require_hermitian`, by what the kernel found."""
    found = scans.get()[:, 1:].view(np.float32)
    entry, apart = found[:, 0].astype(float), found[:, 1].astype(float)
    bad = np.isfinite(entry) & (apart > HERMITIAN * entry)
    if bad.any():
        raise not_hermitian(int(bad.argmax()) % channels)


@lru_cache(maxsize=256)
def _scan(matrices: int, antennas: int, device: Device) -> BoundKernel:
    """Return the launch that scans covariances."""
    values = {
        "covariances": 0, "scans": 0, "fragments": 0, "descales": 0, "matrices": matrices,
        "antennas": antennas, "row_tiles": row_tiles(antennas),
    }  # fmt: skip
    return BoundKernel(
        PendingKernel(scan_source(), device.target, SCAN_KERNEL), matrices, PACK_THREADS,
        Arguments(arguments_dtype(PACK_ARGUMENTS), values),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _few_antennas(
    problem: ImageProblem, plan: FewAntennasPlan, blocks: int, splits: int, device: Device
) -> BoundKernel:
    """Return the launch that images few antennas."""
    values = {
        "covariances": 0, "positions": 0, "scales": 0, "directions": 0, "power": 0,
        "images": problem.matrices, "channels": problem.channels,
        "direction_count": problem.directions, "splits": splits,
    }  # fmt: skip
    return BoundKernel(
        PendingKernel(few_antennas_source(plan), device.target, few_antennas_kernel_name(plan)),
        blocks, plan.threads, Arguments(arguments_dtype(FEW_ANTENNAS_ARGUMENTS), values),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _launches(
    problem: ImageProblem, plan: ImagePlan, blocks: int, splits: int, device: Device
) -> tuple[BoundKernel, BoundKernel]:
    """Return the launches that pack and image. Raises PlanError for a plan that is not legal."""
    check_plan(plan, problem.precision, device.require_arch())
    precision, target = problem.precision, device.target
    matrices = problem.matrices * problem.channels
    tiles, shared = row_tiles(problem.antennas), shared_bytes(plan, precision)
    kernels = (
        PendingKernel(pack_source(precision), target, pack_name(precision)),
        PendingKernel(
            image_source(plan, precision), target, kernel_name(plan, precision), shared
        ),
    )  # fmt: skip
    pointers = {"covariances": 0, "scans": 0, "fragments": 0, "descales": 0}
    sizes = {"matrices": matrices, "antennas": problem.antennas, "row_tiles": tiles}
    packing = arguments_dtype(PACK_ARGUMENTS)
    words = matrices * fragment_bytes(problem.antennas, precision) // 16 // precision.terms
    packs = min(-(-words // PACK_THREADS), _PACK_BLOCKS * device.sm_count)
    values = {
        "fragments": 0, "descales": 0, "positions": 0, "scales": 0, "directions": 0, "power": 0,
        "images": problem.matrices, "channels": problem.channels,
        "panels": panels_of(problem.antennas), "row_tiles": tiles,
        "direction_count": problem.directions, "splits": splits,
    }  # fmt: skip
    return (
        BoundKernel(kernels[0], packs, PACK_THREADS, Arguments(packing, {**pointers, **sizes})),
        BoundKernel(
            kernels[1], blocks, plan.threads, Arguments(arguments_dtype(IMAGE_ARGUMENTS), values),
            shared_bytes=shared,
        ),
    )  # fmt: skip
