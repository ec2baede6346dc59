"""Launches of the fma family: products of a short k, operands as they lie."""

from __future__ import annotations

from dataclasses import replace

import cupy

from argand.device import Device
from argand.gemm.fma.plan import FmaPlan, fma_kernel_name, fma_source
from argand.gemm.problem import GemmProblem
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.launch import are_long, argument_values, in_grids
from argand.runtime.calls.layout import Layout
from argand.runtime.compile.loading import PendingKernel


class FmaLaunch:
    """Computes out = alpha op(A) op(B) + beta C for arrays of these layouts, at any address.

    Arguments as in `argand.gemm.sm80.launch.MmaLaunch`.
    """

    def __init__(
        self,
        problem: GemmProblem,
        left: Layout,
        right: Layout,
        c: Layout,
        out: Layout,
        device: Device,
        plan: FmaPlan,
    ) -> None:
        #: Bytes of workspace: none.
        self.nbytes = 0
        plan = replace(plan, any_strides=are_long((left, right, c, out)))
        #: The kernel.
        self.plan = plan
        kernel = PendingKernel(
            fma_source(problem.precision, plan), device.target,
            fma_kernel_name(problem.precision, plan), 0,
        )  # fmt: skip
        blocks = GemmSizes(1, problem.m, problem.n, problem.k).tiles(plan.block_m, plan.block_n)
        #: The launches, of addresses a, b, c, out, 0, 0.
        self.sequence = in_grids(
            kernel, blocks, plan.threads, problem.batch,
            argument_values(problem, left, right, c, out),
        )  # fmt: skip

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0."""
        self.sequence((a, b, c, out, 0, 0), cupy.cuda.get_current_stream().ptr)
