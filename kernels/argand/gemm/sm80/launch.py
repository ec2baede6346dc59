"""Launches of the mma.sync family, which reads operands as they lie, on every GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cupy

from argand.device import Device
from argand.gemm.absmax_launch import AbsmaxLaunch
from argand.gemm.linear_combination import linear_combination
from argand.gemm.problem import GemmProblem
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.heuristics import plan_mma
from argand.gemm.sm80.occupancy import launched_bytes
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm80.slices import partial_bytes
from argand.gemm.sm80.source import GEMM_ARGUMENTS, mma_kernel_name, mma_source
from argand.multiprocessor import LARGEST_GRID
from argand.runtime.calls.layout import Layout, is_k_major
from argand.runtime.compile.loading import PendingKernel
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel
from argand.runtime.memory.workspace import call_memory, zeroed_workspace

_DTYPE = arguments_dtype(GEMM_ARGUMENTS)
_MEMBERS = {name: Address(i) for i, name in enumerate(
    ("a", "b", "c", "out", "a_absmax", "b_absmax")
)}  # fmt: skip
"""The addresses of a call, in order, by argument."""
_GRID_MEMBERS = _MEMBERS | {"partials": Address(6), "arrived": Address(7)}
"""The addresses of a call, by argument, where clusters share tiles."""
_LARGEST_STRIDE = 2**31 - 1
_LARGEST_SIZE = 2**28
"""Rows and k, whose 8 bytes an element are counted in 32 bits."""


class MmaLaunch:
    """Computes out = alpha op(A) op(B) + beta C for arrays of these layouts, at any address.

    ``left`` has the rows of op(A), ``right`` the columns of op(B) as its rows, each by k, not yet
    conjugated; ``c`` is out's layout where there is no C. A batch larger than a grid takes several
    launches. ``tile`` replaces the tile of the least cost; ``allowed`` is that of `Question`.
    """

    def __init__(
        self,
        problem: GemmProblem,
        left: Layout,
        right: Layout,
        c: Layout,
        out: Layout,
        device: Device,
        tile: MmaPlan | None = None,
        allowed: int | None = None,
    ) -> None:
        question = Question(
            problem.precision, GemmSizes.of(problem), _traits(left), _traits(right), allowed
        )
        plan = plan_mma(question, device.require_arch(), device.sm_count, tile)
        # Two scaled terms leave registers for mirror images where all of k is in the stages.
        split = problem.precision.scaled and problem.precision.terms > 1 and not plan.finds_absmax
        mirror = problem.mirror and out.column_stride == 1 and not split
        contiguous = all(_contiguous(x) for x in (left, right))
        any_strides = not contiguous or are_long((left, right, c, out))
        blocks_per_sm = 1 if any_strides else plan.blocks_per_sm  # addresses take the registers
        plan = replace(plan, any_strides=any_strides, mirror=mirror, blocks_per_sm=blocks_per_sm)
        #: The kernel.
        self.plan = plan
        before = problem.precision.scaled and not plan.finds_absmax
        self._absmax = AbsmaxLaunch((left, right), problem.batch, device) if before else None
        sizes = GemmSizes(1, problem.m, problem.n, problem.k, triangle=problem.triangle)
        tiles = sizes.tiles(plan.block_m, plan.block_n)
        shared_bytes = launched_bytes(
            plan, problem.k, problem.batch * tiles * plan.slices, device.sm_count,
            device.require_arch(),
        )  # fmt: skip
        kernel = PendingKernel(
            mma_source(problem.precision, plan), device.target,
            mma_kernel_name(problem.precision, plan), max(plan.shared_bytes, shared_bytes),
        )  # fmt: skip
        shared = problem.batch * tiles * (plan.grid_slices > 1)
        self._partial_bytes = problem.batch * tiles * partial_bytes(plan)
        #: Bytes of workspace: of partial tiles, and of what the absmax kernel finds.
        self.nbytes = self._partial_bytes + (self._absmax.nbytes if self._absmax else 0)
        self._counters = 4 * shared * plan.cluster
        self._device = device.index
        self._launches = in_grids(
            kernel, tiles * plan.slices, plan.threads, problem.batch,
            argument_values(problem, left, right, c, out) | {"grid_slices": plan.grid_slices},
            shared_bytes, _GRID_MEMBERS if shared else _MEMBERS,
        )  # fmt: skip

    @property
    def sequence(self) -> LaunchSequence | None:
        """The launches, where there is no absmax kernel and no workspace."""
        return self._launches if not self.nbytes else None

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0."""
        absmax: Sequence[int] = (0, 0)
        # Freed after the launch, it is reused in the stream's order, as are the counters.
        memory = call_memory(self.nbytes) if self.nbytes else None
        at = 0 if memory is None else memory.ptr
        if self._absmax is not None:
            absmax = self._absmax((a, b), at + self._partial_bytes)
        stream = cupy.cuda.get_current_stream().ptr
        workspace: tuple[int, ...] = ()
        if self._partial_bytes:
            workspace = (at, zeroed_workspace(self._counters, stream, self._device))
        self._launches((a, b, c, out, *absmax, *workspace), stream)


def in_grids(
    kernel: PendingKernel,
    blocks: int,
    threads: int,
    batch: int,
    values: dict[str, Any],
    shared_bytes: int = 0,
    members: Mapping[str, Address] = _MEMBERS,
) -> LaunchSequence:
    """Return the launches of a batch of products of ``blocks`` blocks; one where a grid holds all.

    Their addresses are those of a, b, c, out and two of row absmax, as ``members`` says.
    """
    batches = max(1, LARGEST_GRID // blocks)
    kernels = [
        BoundKernel(
            kernel, blocks * min(batches, batch - first), threads,
            Arguments(_DTYPE, values | {"first_batch": first}), shared_bytes=shared_bytes,
        )
        for first in range(0, batch, batches)
    ]  # fmt: skip
    return LaunchSequence(
        kernels, lambda addresses: [one.argument_update(members, (), addresses) for one in kernels]
    )


def are_long(layouts: Sequence[Layout]) -> bool:
    """Return whether a size, or a row's or a column's stride, in elements, does not fit 32 bits."""
    return any(
        max(x.rows, x.columns) > _LARGEST_SIZE
        or max(abs(x.row_stride), abs(x.column_stride)) > _LARGEST_STRIDE
        for x in layouts
    )


def _contiguous(x: Layout) -> bool:
    """Return whether the axis that a kernel reads as contiguous has a stride of 1."""
    return (x.column_stride if is_k_major(x) else x.row_stride) == 1


def _traits(x: Layout) -> OperandTraits:
    """Return the traits of an operand, copyable where 16-byte copies read it and nothing beyond."""
    along_k = is_k_major(x)
    whole_pairs = x.in_pairs(along_k) and (x.columns if along_k else x.rows) % 2 == 0
    return OperandTraits(copyable=whole_pairs, k_major=along_k)


def argument_values(
    problem: GemmProblem, left: Layout, right: Layout, c: Layout, out: Layout
) -> dict[str, Any]:
    """Return the members of a launch's arguments without ``first_batch``, with addresses of 0."""
    conjugated = [op == "C" for op in (problem.op_a, problem.op_b)]
    return {
        "a": 0, "b": 0, "c": 0, "out": 0, "a_absmax": 0, "b_absmax": 0, "partials": 0, "arrived": 0,
        "m": problem.m, "n": problem.n, "k": problem.k,
        "a_stride_m": left.row_stride, "a_stride_k": left.column_stride,
        "a_stride_batch": left.batch_stride,
        "b_stride_n": right.row_stride, "b_stride_k": right.column_stride,
        "b_stride_batch": right.batch_stride,
        "c_stride_m": c.row_stride, "c_stride_n": c.column_stride, "c_stride_batch": c.batch_stride,
        "out_stride_m": out.row_stride, "out_stride_n": out.column_stride,
        "out_stride_batch": out.batch_stride,
        "a_absmax_stride_batch": left.rows if left.batch_stride else 0,
        "b_absmax_stride_batch": right.rows if right.batch_stride else 0,
        **linear_combination(problem.alpha, problem.beta),
        "conjugate_b": conjugated[0] != conjugated[1], "conjugate_result": conjugated[0],
        "store_pairs_n": out.in_pairs(along_columns=True), "grid_slices": 1,
    }  # fmt: skip
