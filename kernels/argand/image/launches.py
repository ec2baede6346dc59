"""Launches of an image on a GPU: checks, packing, power, and the sum of splits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Device
from argand.image.check_and_sum_source import (
    CHECK_ARGUMENTS,
    CHECK_KERNEL,
    CHECK_THREADS,
    SUM_ARGUMENTS,
    SUM_KERNEL,
    SUM_THREADS,
    check_blocks,
    check_parts,
    check_source,
    sum_blocks,
    sum_source,
)
from argand.image.few_antennas_plan import (
    FEW_ANTENNAS_ARGUMENTS,
    FewAntennasPlan,
    few_antennas_kernel_name,
    few_antennas_source,
)
from argand.image.geometry import LONGEST_SQUARE, centred, read_positions
from argand.image.heuristics import Plan
from argand.image.operand_flag import new_flag
from argand.image.plan import (
    IMAGE_ARGUMENTS,
    PACK_ARGUMENTS,
    PACK_THREADS,
    PANEL,
    MmaImagePlan,
    fragment_bytes,
    image_source,
    kernel_name,
    pack_name,
    pack_source,
    panels_of,
    row_tiles,
    shared_bytes,
)
from argand.image.problem import HERMITIAN, SPEED_OF_LIGHT, TURN, ImageProblem
from argand.image.splits import blocks_of_one_split, splits_of
from argand.multiprocessor import LARGEST_GRID
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import device_table
from argand.runtime.memory.workspace import call_memory

_PACK_BLOCKS = 16
"""Largest grid of the kernel that packs, in blocks of a multiprocessor; threads loop beyond."""
_ALIGNMENT = 256


class ImageLaunches:
    """The launches of one problem by a plan, for any addresses.

    Args:
        problem: the problem of at least one matrix, channel, antenna and direction.
        plan: the plan of the kernel, a legal one.
        columns: columns of directions: 2 (l and m) or 3.
        device: the current one.

    Raises ValueError where the grid would be too large.
    """

    def __init__(self, problem: ImageProblem, plan: Plan, columns: int, device: Device) -> None:
        self._problem, self._device = problem, device
        matrices, directions = problem.matrices * problem.channels, problem.directions
        blocks = blocks_of_one_split(problem, plan)
        splits = splits_of(problem, plan, device.sm_count)
        parts = check_parts(problem.antennas)
        check_grid = check_blocks(matrices, problem.antennas, directions)
        if max(blocks * splits, check_grid) > LARGEST_GRID:
            raise ValueError(f"directions and leading axes take {blocks * splits} blocks, too many")
        self._scales_at = 8 * 3 * PANEL * panels_of(problem.antennas)
        count = problem.matrices * directions
        sizes = {"largest": 4 * matrices * parts}
        if columns == 2:
            sizes["unit_vectors"] = 24 * directions
        if splits > 1:
            sizes["parts"] = 4 * splits * count
        self._check = bound_kernel(
            check_source(), CHECK_KERNEL, check_grid, CHECK_THREADS, CHECK_ARGUMENTS, device,
            {
                "longest_square": LONGEST_SQUARE, "hermitian": HERMITIAN, "matrices": matrices,
                "parts": parts, "antennas": problem.antennas, "direction_count": directions,
                "columns": columns,
            },
        )  # fmt: skip
        self._pack: BoundKernel | None = None
        if isinstance(plan, FewAntennasPlan):
            self._power = _few_antennas(problem, plan, blocks * splits, splits, device)
            name = few_antennas_kernel_name(plan)
        else:
            sizes["fragments"] = matrices * fragment_bytes(problem.antennas, problem.precision)
            sizes["descales"] = 4 * matrices
            self._pack = _packing(problem, device)
            self._power = _on_tensor_cores(problem, plan, blocks * splits, splits, device)
            name = kernel_name(plan, problem.precision)
        self._sum = None
        if splits > 1:
            self._sum = bound_kernel(
                sum_source(), SUM_KERNEL, sum_blocks(count), SUM_THREADS, SUM_ARGUMENTS, device,
                {"count": count, "splits": splits},
            )  # fmt: skip
        self._offsets: dict[str, int] = {}
        self._bytes = 0
        for part, size in sizes.items():
            self._offsets[part] = self._bytes
            self._bytes += -(-size // _ALIGNMENT) * _ALIGNMENT
        #: The kernel of the power, and how many blocks share a direction.
        self.name = f"{name}, {splits} splits"

    def __call__(self, r: int, x: Any, f: Any, s: int, out: int) -> bool:
        """Compute at addresses on the current stream; return whether operands look right.

        The host waits for the launches.
        """
        flag = new_flag()
        self.queue(r, x, f, s, out, flag.address)
        return not flag.is_raised(cupy.cuda.get_current_stream().ptr)

    def queue(self, r: int, x: Any, f: Any, s: int, out: int, suspect: int = 0) -> None:
        """Queue the launches at addresses on the current stream.

        ``x`` and ``f`` are NumPy arrays, checked here. Where covariances are not Hermitian or
        directions are no unit vectors, the power is NaN, and kernels set the word at ``suspect``.
        """
        problem = self._problem
        table = _table(
            x.tobytes(), x.dtype, x.shape, f.tobytes(), f.dtype, problem.sign, self._device.index
        )
        memory = call_memory(self._bytes, table)
        at = {part: memory.ptr + offset for part, offset in self._offsets.items()}
        directions = at.get("unit_vectors", s)
        self._check({
            "covariances": r, "largest": at["largest"], "directions": s,
            "unit_vectors": directions, "suspect": suspect,
        })  # fmt: skip
        members = {
            "positions": table.address, "scales": table.address + self._scales_at,
            "directions": directions, "power": at.get("parts", out),
        }  # fmt: skip
        if self._pack is None:
            members |= {"covariances": r, "largest": at["largest"]}
        else:
            packed = {"fragments": at["fragments"], "descales": at["descales"]}
            self._pack({"covariances": r, "largest": at["largest"], **packed})
            members |= packed
        self._power(members)
        if self._sum is not None:
            self._sum({"parts": at["parts"], "power": out})
        if kernel_trace.watching:
            kernel_trace.note(self.name)


class _Table:
    """Numbers on the current device, which a graph that reads them keeps by this object."""

    def __init__(self, numbers: Any) -> None:
        self._array = device_table(numbers)
        #: The address of the numbers.
        self.address = int(self._array.data.ptr)


@lru_cache(maxsize=64)
def _table(
    x_bytes: bytes, x_type: Any, x_shape: tuple[int, ...], f_bytes: bytes, f_type: Any, sign: int,
    device: int,
) -> _Table:  # fmt: skip
    """Return positions, then the channels' scales as kernels read them, on the current device.

    They are kept by their numbers, whose checks and copies take longer than a small image.
    """
    x = np.frombuffer(x_bytes, x_type).reshape(x_shape)
    f = np.frombuffer(f_bytes, f_type)
    x, f = read_positions(x, f, len(x), len(f))
    places = np.zeros((PANEL * panels_of(len(x)), 3))
    places[: len(x)] = centred(x)
    return _Table(np.concatenate([places.ravel(), sign / TURN * (f / SPEED_OF_LIGHT)]))


def _few_antennas(
    problem: ImageProblem, plan: FewAntennasPlan, blocks: int, splits: int, device: Device
) -> BoundKernel:
    return bound_kernel(
        few_antennas_source(plan), few_antennas_kernel_name(plan), blocks, plan.threads,
        FEW_ANTENNAS_ARGUMENTS, device,
        {
            "longest_square": LONGEST_SQUARE, "images": problem.matrices,
            "channels": problem.channels,
            "direction_count": problem.directions, "splits": splits,
        },
    )  # fmt: skip


def _packing(problem: ImageProblem, device: Device) -> BoundKernel:
    precision, matrices = problem.precision, problem.matrices * problem.channels
    words = matrices * fragment_bytes(problem.antennas, precision) // 16 // precision.terms
    blocks = min(-(-words // PACK_THREADS), _PACK_BLOCKS * device.sm_count)
    return bound_kernel(
        pack_source(precision), pack_name(precision), blocks, PACK_THREADS, PACK_ARGUMENTS, device,
        {
            "matrices": matrices, "parts": check_parts(problem.antennas),
            "antennas": problem.antennas, "row_tiles": row_tiles(problem.antennas),
        },
    )  # fmt: skip


def _on_tensor_cores(
    problem: ImageProblem, plan: MmaImagePlan, blocks: int, splits: int, device: Device
) -> BoundKernel:
    """Return the launch that multiplies covariances and weights on tensor cores."""
    precision = problem.precision
    return bound_kernel(
        image_source(plan, precision), kernel_name(plan, precision), blocks, plan.threads,
        IMAGE_ARGUMENTS, device,
        {
            "longest_square": LONGEST_SQUARE, "images": problem.matrices,
            "channels": problem.channels,
            "panels": panels_of(problem.antennas), "row_tiles": row_tiles(problem.antennas),
            "direction_count": problem.directions, "splits": splits,
        },
        shared_bytes(plan, precision),
    )  # fmt: skip
