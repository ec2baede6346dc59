"""Transforms on a GPU in three kernels through a workspace: `dft.three_kernel` launched."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from argand.device import gpu
from argand.dft.api import DftProblem
from argand.dft.three_kernel import (
    ARGUMENTS,
    PASSES,
    PassesPlan,
    passes_kernel_name,
    passes_source,
    passes_tables,
)
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.kernel import BoundKernel

_DTYPE = arguments_dtype(ARGUMENTS)
WORKSPACE_BYTES = 1 << 30
"""Of a call's workspace, or one transform's where that is more: rows pass in pieces of it."""


def by_passes(
    problem: DftProblem, plan: PassesPlan, x: Any, target: Any, strides: tuple[int, ...]
) -> None:
    """The transforms of rows of x into those of target, which lie ``strides`` elements apart.

    Rows that are in the workspace have been read before any of theirs is written, so target may be
    x.
    """
    each = 8 * plan.size
    piece = max(1, min(problem.rows, WORKSPACE_BYTES // each))
    work = cupy.empty(piece * plan.size, cupy.complex64)
    for start in range(0, problem.rows, piece):
        rows = min(piece, problem.rows - start)
        addresses = {
            "x": x.data.ptr + 8 * start * strides[0],
            "out": target.data.ptr + 8 * start * strides[1],
            "work": work.data.ptr,
        }
        for kernel in _prepared(problem, plan, rows, strides, x.device.id)[0]:
            kernel(addresses)


@lru_cache(maxsize=16)
def _prepared(
    problem: DftProblem, plan: PassesPlan, rows: int, strides: tuple[int, ...], device: int
) -> tuple[list[BoundKernel], dict[str, Any]]:
    """The kernels for so many rows at any address, and the tables that they point to."""
    precision, target = problem.precision, gpu(device).require_arch().target
    tables = _tables(plan, problem.inverse, device)
    values: dict[str, Any] = dict.fromkeys(_DTYPE.names or (), 0)
    values |= {name: table.data.ptr for name, table in tables.items()}
    values |= {"rows": rows, "x_stride": strides[0], "out_stride": strides[1]}
    values["unit"] = problem.factor
    source, found = passes_source(plan, precision), []
    for which in PASSES:
        shared = plan.pass_bytes(which, precision)
        kernel = nvrtc.load(source, target, passes_kernel_name(plan, which), shared)
        found.append(
            BoundKernel(
                kernel, plan.pass_blocks(which, rows), plan.pass_threads(which),
                Arguments(_DTYPE, values), shared_bytes=shared,
            )
        )  # fmt: skip
    return found, tables


@lru_cache(maxsize=8)
def _tables(plan: PassesPlan, inverse: bool, device: int) -> dict[str, Any]:
    """`passes_tables` on a device."""
    return {name: cupy.asarray(x) for name, x in passes_tables(plan, inverse=inverse).items()}
