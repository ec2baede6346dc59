"""Launches of plans of several kernels on a GPU, through a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy

from argand.device import gpu
from argand.dft.plan import dft_source, kernel_names
from argand.dft.problem import DftProblem
from argand.dft.three_kernel import ARGUMENTS, ThreeKernelPlan, three_kernel_tables
from argand.dft.two_pass import PASS_ARGUMENTS, TwoPassPlan, two_pass_tables
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import ArgumentUpdate, BoundKernel, bound_kernel
from argand.runtime.memory.device_table import device_table
from argand.runtime.memory.workspace import call_memory
from argand.runtime.memory.workspace_limit import workspace_error

MultiKernelPlan = ThreeKernelPlan | TwoPassPlan
_ARGUMENTS = {ThreeKernelPlan: ARGUMENTS, TwoPassPlan: PASS_ARGUMENTS}
WORKSPACE_BYTES = 1 << 30
"""Largest workspace of a call, or that of one transform: rows are computed in chunks of it."""
_X, _OUT, _WORK = range(3)
"""Addresses of a call: x, the result and the workspace."""


class MultiKernelLaunch:
    """Transforms of rows that lie ``strides`` elements apart, in x and in the result.

    The rows in the workspace are read before any of their results is written, so the result may be
    x. Raises CompileError where NVRTC fails, WorkspaceError where one transform takes more than
    ``allowed`` bytes of workspace.
    """

    def __init__(
        self, problem: DftProblem, plan: MultiKernelPlan, strides: tuple[int, int], device: int,
        allowed: int | None = None,
    ) -> None:  # fmt: skip
        precision = problem.precision
        self._tables = _tables(plan, problem.inverse, device)  # what the kernels point to
        #: Bytes of the tables, which other launches may share.
        self.nbytes = sum(int(table.nbytes) for table in self._tables.values())
        values: dict[str, Any] = {name: x.data.ptr for name, x in self._tables.items()}
        values |= {"x_stride": strides[0], "out_stride": strides[1], "scale": problem.factor}
        if isinstance(plan, TwoPassPlan):
            values["sign"] = -1.0 if problem.inverse else 1.0
        source, names = dft_source(plan, precision), kernel_names(plan, precision)
        most = WORKSPACE_BYTES if allowed is None else min(WORKSPACE_BYTES, allowed)
        if allowed is not None and 8 * plan.size > allowed:
            raise workspace_error(f"a transform of {plan.length}", 8 * plan.size, allowed)
        piece = max(1, min(problem.rows, most // (8 * plan.size)))
        self._workspace_bytes = 8 * piece * plan.size
        self._kernels: list[tuple[BoundKernel, dict[str, Address]]] = []
        for start in range(0, problem.rows, piece):
            rows = min(piece, problem.rows - start)
            members = {
                "x": Address(_X, 8 * start * strides[0]),
                "out": Address(_OUT, 8 * start * strides[1]),
                "workspace": Address(_WORK),
            }
            if isinstance(plan, ThreeKernelPlan):
                values["rows"] = rows
            for role, name in zip(plan.roles, names, strict=True):
                bound = bound_kernel(
                    source, name, plan.grid_blocks(role, rows), plan.kernel_threads(role),
                    _ARGUMENTS[type(plan)], gpu(device), values,
                    plan.kernel_shared_bytes(role, precision),
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
def _tables(plan: MultiKernelPlan, inverse: bool, device: int) -> dict[str, Any]:
    """Return the arrays of `three_kernel_tables` or `two_pass_tables` on a device."""
    if isinstance(plan, TwoPassPlan):
        found = two_pass_tables(plan)
    else:
        found = three_kernel_tables(plan, inverse=inverse)
    return {name: device_table(x) for name, x in found.items()}
