"""Launches of the short-k family, operands as they lie."""

from __future__ import annotations

from dataclasses import replace

import cupy

from argand.device import Device
from argand.gemm.problem import GemmProblem
from argand.gemm.short_k_plan import (
    SIDE,
    THREADS,
    ShortKPlan,
    short_k_kernel_name,
    short_k_source,
)
from argand.gemm.sizes import GemmSizes
from argand.gemm.sm80_launch import argument_values, in_grids
from argand.runtime.layout import Layout, is_k_major
from argand.runtime.loading import PendingKernel


class ShortKLaunch:
    """Computes out = alpha op(A) op(B) + beta C for arrays of these layouts, at any address.

    Arguments as of `argand.gemm.sm80_launch.MmaLaunch`.
    """

    def __init__(
        self,
        problem: GemmProblem,
        left: Layout,
        right: Layout,
        c: Layout,
        out: Layout,
        device: Device,
        plan: ShortKPlan,
    ) -> None:
        #: Bytes of workspace: none.
        self.nbytes = 0
        #: The kernel.
        self.plan = replace(
            plan.of_k(problem.k), a_k_major=is_k_major(left), b_k_major=is_k_major(right),
            any_strides=not all(_contiguous(x) for x in (left, right)),
        )  # fmt: skip
        kernel = PendingKernel(
            short_k_source(problem.precision, self.plan), device.target,
            short_k_kernel_name(problem.precision, self.plan), self.plan.shared_bytes,
        )  # fmt: skip
        tiles = GemmSizes(1, problem.m, problem.n, problem.k).tiles(SIDE, SIDE)
        #: The launches, of addresses a, b, c, out, 0, 0.
        self.sequence = in_grids(
            kernel, tiles, THREADS, problem.batch,
            argument_values(problem, left, right, c, out), self.plan.shared_bytes,
        )  # fmt: skip

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0."""
        self.sequence((a, b, c, out, 0, 0), cupy.cuda.get_current_stream().ptr)


def _contiguous(x: Layout) -> bool:
    """Return whether the axis that a kernel reads as contiguous has a stride of 1."""
    return (x.column_stride if is_k_major(x) else x.row_stride) == 1
