"""Transforms on a GPU in three kernels through a workspace: `dft.three_kernel` launched."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import cupy

from argand.device import gpu
from argand.dft.problem import DftProblem
from argand.dft.three_kernel import (
    ARGUMENTS,
    PASSES,
    PassesPlan,
    passes_kernel_name,
    passes_source,
    passes_tables,
)
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Address, Arguments, arguments_dtype
from argand.runtime.graph import Launches
from argand.runtime.kernel import BoundKernel, Filling

_DTYPE = arguments_dtype(ARGUMENTS)
WORKSPACE_BYTES = 1 << 30
"""Of a call's workspace, or one transform's where that is more: rows pass in pieces of it."""
_X, _OUT, _WORK = range(3)
"""The addresses that a launch is given: of x, of the result and of the workspace."""


class ThreeKernelLaunch:
    """Transforms of rows that lie ``strides`` elements apart, in x and in the result.

    Rows that are in the workspace have been read before any of theirs is written, so the result may
    be x. Raises CompileError where NVRTC fails.
    """

    def __init__(
        self, problem: DftProblem, plan: PassesPlan, strides: tuple[int, int], device: int
    ) -> None:
        precision, target = problem.precision, gpu(device).require_arch().target
        self._tables = _tables(plan, problem.inverse, device)  # what the kernels point to
        #: Bytes of the tables, which other launches may share.
        self.nbytes = sum(int(table.nbytes) for table in self._tables.values())
        values: dict[str, Any] = dict.fromkeys(_DTYPE.names or (), 0)
        values |= {name: table.data.ptr for name, table in self._tables.items()}
        values |= {"x_stride": strides[0], "out_stride": strides[1], "scale": problem.factor}
        source = passes_source(plan, precision)
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
            for which in PASSES:
                shared = plan.pass_bytes(which, precision)
                kernel = nvrtc.load(source, target, passes_kernel_name(plan, which), shared)
                bound = BoundKernel(
                    kernel, plan.pass_blocks(which, rows), plan.pass_threads(which),
                    Arguments(_DTYPE, values | {"rows": rows}), shared_bytes=shared,
                )  # fmt: skip
                self._kernels.append((bound, members))
        self._launches = Launches([kernel for kernel, _ in self._kernels], self._fillings)

    def __call__(self, x: int, out: int) -> None:
        """Queue them on the current stream, for arrays at these addresses."""
        # Memory that is freed after the launches is reused in the stream's order.
        memory = cupy.cuda.alloc(self._workspace_bytes)
        self._launches((x, out, memory.ptr), cupy.cuda.get_current_stream().ptr)

    def _fillings(self, addresses: Sequence[int]) -> list[Filling]:
        return [kernel.filling(members, (), addresses) for kernel, members in self._kernels]


@lru_cache(maxsize=8)
def _tables(plan: PassesPlan, inverse: bool, device: int) -> dict[str, Any]:
    """`passes_tables` on a device."""
    return {name: cupy.asarray(x) for name, x in passes_tables(plan, inverse=inverse).items()}
