"""Launches of the three-kernel plan on a GPU, through a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy

from argand.device import gpu
from argand.dft.problem import DftProblem
from argand.dft.three_kernel import (
    ARGUMENTS,
    KERNELS,
    ThreeKernelPlan,
    three_kernel_name,
    three_kernel_source,
    three_kernel_tables,
)
from argand.runtime.arguments import Address, Arguments, arguments_dtype
from argand.runtime.device_table import device_table
from argand.runtime.graph import LaunchSequence
from argand.runtime.kernel import ArgumentUpdate, BoundKernel
from argand.runtime.loading import load
from argand.runtime.workspace import call_memory

_DTYPE = arguments_dtype(ARGUMENTS)
WORKSPACE_BYTES = 1 << 30
"""Largest workspace of a call, or that of one transform: rows are computed in chunks of it."""
_X, _OUT, _WORK = range(3)
"""Addresses of a call: x, the result and the workspace."""


class ThreeKernelLaunch:
    """Transforms of rows that lie ``strides`` elements apart, in x and in the result.

    The rows in the workspace are read before any of their results is written, so the result may be
    x. Raises CompileError where NVRTC fails.
    """

    def __init__(
        self, problem: DftProblem, plan: ThreeKernelPlan, strides: tuple[int, int], device: int
    ) -> None:
        precision, target = problem.precision, gpu(device).require_arch().target
        self._tables = _tables(plan, problem.inverse, device)  # what the kernels point to
        #: Bytes of the tables, role other launches may share.
        self.nbytes = sum(int(table.nbytes) for table in self._tables.values())
        values: dict[str, Any] = dict.fromkeys(_DTYPE.names or (), 0)
        values |= {name: table.data.ptr for name, table in self._tables.items()}
        values |= {"x_stride": strides[0], "out_stride": strides[1], "scale": problem.factor}
        source = three_kernel_source(plan, precision)
        piece = max(1, min(problem.rows, WORKSPACE_BYTES // (8 * plan.size)))
        self._workspace_bytes = 8 * piece * plan.size
        self._kernels: list[tuple[BoundKernel, dict[str, Address]]] = []
        for start in range(0, problem.rows, piece):
            rows = min(piece, problem.rows - start)
            members = {
                "x": Address(_X, 8 * start * strides[0]),
                "out": Address(_OUT, 8 * start * strides[1]),
                "workspace": Address(_WORK),
            }
            for role in KERNELS:
                shared = plan.kernel_shared_bytes(role, precision)
                kernel = load(source, target, three_kernel_name(plan, role), shared)
                bound = BoundKernel(
                    kernel, plan.grid_blocks(role, rows), plan.kernel_threads(role),
                    Arguments(_DTYPE, values | {"rows": rows}), shared_bytes=shared,
                )  # fmt: skip
                self._kernels.append((bound, members))
        self._launches = LaunchSequence([kernel for kernel, _ in self._kernels], self._updates)

    def __call__(self, x: int, out: int) -> None:
        """Queue the kernels on the current stream, for arrays at these addresses."""
        # Memory that is freed after the launches is reused in the stream's order.
        memory = call_memory(self._workspace_bytes, self)
        self._launches((x, out, memory.ptr), cupy.cuda.get_current_stream().ptr)

    def _updates(self, addresses: Sequence[int]) -> list[ArgumentUpdate]:
        return [kernel.argument_update(members, (), addresses) for kernel, members in self._kernels]


@lru_cache(maxsize=8)
def _tables(plan: ThreeKernelPlan, inverse: bool, device: int) -> dict[str, Any]:
    """Return the arrays of `three_kernel_tables` on a device."""
    return {name: device_table(x) for name, x in three_kernel_tables(plan, inverse=inverse).items()}
