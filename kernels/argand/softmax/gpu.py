"""Softmax on a GPU: launches of the kernels of ``cuda/softmax/kernel.cuh``, and the call cache."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cupy

from argand.device import Device, gpu
from argand.multiprocessor import LARGEST_GRID, PORTABLE_CLUSTER
from argand.runtime.calls.call_cache import CallCache, Key
from argand.runtime.calls.kept_call import Chosen, Run, StreamRun
from argand.runtime.calls.layout import clashes, device_of, row_stride
from argand.runtime.compile.loading import load
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import ArgumentUpdate, BoundKernel, max_active_clusters
from argand.runtime.memory.workspace import zeroed_workspace
from argand.runtime.plan import PlanError
from argand.runtime.plans.plan_override import PlanOverride
from argand.softmax import tuned
from argand.softmax.few_rows import are_few_rows
from argand.softmax.heuristics import choose_vector, plan_softmax
from argand.softmax.legality import check_row, check_softmax_plan
from argand.softmax.plan import LINE_BYTES, RowPlan, SoftmaxForm, vector_for
from argand.softmax.problem import SoftmaxProblem
from argand.softmax.rings import with_lines
from argand.softmax.source import ARGUMENTS, kernel_name, scale_arguments, softmax_source

_DTYPE = arguments_dtype(ARGUMENTS)
_current_stream = cupy.cuda.get_current_stream
_X, _OUT, _EXCHANGE = range(3)
"""Addresses of a call: x, the result, and the workspace of `cuda/softmax/exchange.cuh`."""
_NON_PORTABLE_CLUSTERS = 14
"""``CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED``."""

PLAN_OVERRIDE: PlanOverride[tuple[RowPlan, int]] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use((plan, vector))`` every softmax takes this plan.

``vector`` is the number of values of an access, where the arrays allow it. Tests and tuning use it.
"""
CALLS = CallCache(PLAN_OVERRIDE, tuned.TABLE, in_place=(0,))


def softmax(problem: SoftmaxProblem, x: Any, out: Any, key: Key | None) -> Any:
    """Return the solution of a SoftmaxProblem on the GPU that holds x; ``out`` is checked.

    ``key`` is that of the call cache where x is the caller's own array, else None. Raises
    CompileError where NVRTC fails.
    """
    with device_of(x, out):
        mine = x
        if row_stride(x, x.ndim - 1) is None:
            mine = cupy.ascontiguousarray(x)
        axes = len(problem.result_shape) - (problem.operation != "logsumexp")
        usable = out is not None and row_stride(out, axes) is not None and not clashes(mine, out)
        target = out if usable else cupy.empty(problem.result_shape, problem.result_type)
        if target.size:
            launch = SoftmaxLaunch(problem, mine, target)
            launch(mine.data.ptr, target.data.ptr)
            if mine is x and (out is None or usable):
                entry = tuned.key(launch.form, problem.rows, problem.columns)
                name = kernel_name(launch.form, launch.plan)
                chosen = Chosen(name, launch.plan, entry)
                run, shape, kind = launch.run(), target.shape, problem.result_type
                CALLS.keep(key, run, (x,), out, shape, kind, chosen=chosen)
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


@dataclass(frozen=True)
class _Side:
    """An array as kernels address it: its first element and the stride of rows, in elements."""

    first: int
    stride: int


class SoftmaxLaunch:
    """The launches of one softmax, for arrays of these forms at any address.

    Raises PlanError for a plan override that is not legal or whose blocks do not fit on the device,
    and CompileError where NVRTC fails.
    """

    def __init__(self, problem: SoftmaxProblem, x: Any, out: Any) -> None:
        self.result_shape = problem.result_shape
        self.result_type = problem.result_type
        device = gpu(cupy.cuda.Device().id)
        self._device = device.index
        self.form = form_of(problem, x, out)
        self.plan = _plan_for(problem, self.form, device)
        shared, target = self.plan.shared_bytes(self.form), device.require_arch().target
        name = kernel_name(self.form, self.plan)
        kernel = load(softmax_source(self.form, self.plan), target, name, shared)
        if self.plan.cluster > PORTABLE_CLUSTER and not self.plan.ring:
            cupy.cuda.driver.funcSetAttribute(kernel.ptr, _NON_PORTABLE_CLUSTERS, 1)
        most = LARGEST_GRID
        if self.plan.persistent:
            most = _resident_blocks(kernel.ptr, self.plan, shared, device)
        # Rows beyond the largest grid take further launches.
        step = LARGEST_GRID // self.plan.cluster * self.plan.rows_a_block
        self._kernels: list[BoundKernel] = []
        self._members: list[dict[str, Address]] = []
        for start in range(0, problem.rows, step):
            rows = min(step, problem.rows - start)
            blocks = -(-rows // self.plan.rows_a_block) * self.plan.cluster
            self._add_launch(problem, x, out, kernel, start, rows, min(blocks, most))
        # Groups of blocks that share rows; no more than the rows of a launch, as `blocks` above.
        groups = min(most // self.plan.cluster, step, problem.rows)
        self._exchange_bytes = self.plan.exchange_bytes(groups) if self.plan.ring else 0
        #: The launches, of x, the result and the exchange.
        self.launches = LaunchSequence(self._kernels, self._updates)

    def _add_launch(
        self, problem: SoftmaxProblem, x: Any, out: Any, kernel: Any, start: int, rows: int,
        blocks: int,
    ) -> None:  # fmt: skip
        """Bind the kernel to some rows, with the addresses that a call fills in."""
        read, written = _sides(problem, x, out)
        values = {
            "x": 0, "x_end": 0, "out": 0, "rows": rows, "columns": problem.columns,
            "x_stride": read.stride, "out_stride": written.stride,
            "exchange": 0, "slice_columns": self.plan.slice_columns,
            "load_stages": self.plan.load_stages, "epilogue_stages": self.plan.epilogue_stages,
            **scale_arguments(problem.scale),
        }  # fmt: skip
        self._kernels.append(
            BoundKernel(
                kernel, blocks, self.plan.block_threads, Arguments(_DTYPE, values),
                shared_bytes=self.plan.shared_bytes(self.form),
                cooperative=self.plan.ring and self.plan.cluster > 1,
            )
        )  # fmt: skip
        elements_of_x = max(0, problem.rows - 1) * max(0, read.stride) + problem.columns
        self._members.append({
            "x": Address(_X, start * read.stride * x.dtype.itemsize),
            "x_end": Address(_X, elements_of_x * int(x.dtype.itemsize)),
            "out": Address(_OUT, start * written.stride * out.dtype.itemsize),
            "exchange": Address(_EXCHANGE),
        })  # fmt: skip

    def __call__(self, x: int, out: int) -> None:
        """Queue it on the current stream, for arrays at these addresses."""
        stream = cupy.cuda.get_current_stream().ptr
        nbytes = self._exchange_bytes
        exchange = zeroed_workspace(nbytes, stream, self._device) if nbytes else 0
        self.launches((x, out, exchange), stream)

    def run(self) -> Run | StreamRun:
        """Return a function that queues it as a call does, with less between."""
        if self._exchange_bytes:
            return self
        launches, device = self.launches, self._device

        def run(x: int, out: int, stream: int | None = None) -> None:
            launches((x, out, 0), _current_stream(device).ptr if stream is None else stream)

        return StreamRun(run, launches.__call__, lambda x, out: (x, out, 0))

    def _updates(self, addresses: Sequence[int]) -> list[ArgumentUpdate]:
        return [
            kernel.argument_update(members, (), addresses)
            for kernel, members in zip(self._kernels, self._members, strict=True)
        ]


def _plan_for(problem: SoftmaxProblem, form: SoftmaxForm, device: Device) -> RowPlan:
    """Return the plan override, the tuned plan or the choice. Raises PlanError as the launch."""
    rows, columns, arch = problem.rows, problem.columns, device.require_arch()
    if PLAN_OVERRIDE.value is not None:
        plan = PLAN_OVERRIDE.value[0]
    else:
        measured = tuned.lookup(form, rows, columns, device.index)
        plan = plan_softmax(
            form, arch, rows=rows, columns=columns, sm_count=device.sm_count, measured=measured
        )
    check_softmax_plan(plan, form, arch)
    check_row(plan, form, columns)
    return plan


def _resident_blocks(function: int, plan: RowPlan, shared: int, device: Device) -> int:
    """Return the most resident blocks of a persistent kernel, in whole clusters or groups.

    Blocks of a cluster are neighbours, so occupancy alone overestimates the clusters that fit.
    """
    if plan.cluster == 1 or plan.ring:
        each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            function, plan.block_threads, shared
        )
        groups = int(each) * device.sm_count // plan.cluster
    else:
        groups = max_active_clusters(function, plan.cluster, plan.block_threads, shared)
    if groups == 0:
        raise PlanError(f"{plan} does not fit on {device.name}")
    return groups * plan.cluster


def form_of(problem: SoftmaxProblem, x: Any, out: Any) -> SoftmaxForm:
    """Return the form of a kernel for these arrays.

    Accesses are vectors only where vectors begin at the same columns in x and in rows of the
    result.
    """
    read, of_result = _sides(problem, x, out)
    written = None if problem.operation == "logsumexp" else of_result
    kinds = problem.input, problem.input if written is None else problem.output
    most = vector_for(*kinds)
    one_row = problem.rows <= 1
    if written is not None and (
        (read.first - written.first) % most
        or (not one_row and (read.stride - written.stride) % most)
    ):
        most = 1
    # Vectors of a length that divides all of these never cross the edge of a row.
    line = LINE_BYTES // x.dtype.itemsize
    of_line = math.gcd(line, read.first, problem.columns, 0 if one_row else read.stride)
    even = math.gcd(most, of_line)
    device, rows, columns = gpu(x.device.id), problem.rows, problem.columns
    sm_count = device.sm_count
    if PLAN_OVERRIDE.value is None:
        few = are_few_rows(rows, columns, *kinds, sm_count)
        vector = choose_vector(most, even, columns, problem.operation, few=few)
    else:
        vector = min(most, PLAN_OVERRIDE.value[1])
    strides = [] if one_row else [read.stride, *([] if written is None else [written.stride])]
    form = SoftmaxForm(
        problem.operation, problem.input, problem.output, problem.rounding,
        vector, even % vector > 0, problem.scale == 1,
        all(stride == problem.columns for stride in strides),
    )  # fmt: skip
    return with_lines(
        form, device.require_arch(), rows=rows, columns=columns, even=of_line, sm_count=sm_count
    )


def _sides(problem: SoftmaxProblem, x: Any, out: Any) -> tuple[_Side, _Side]:
    return _side(x, x.ndim - 1), _side(out, out.ndim - (problem.operation != "logsumexp"))


def _side(x: Any, leading: int) -> _Side:
    return _Side(x.data.ptr // x.dtype.itemsize, row_stride(x, leading) or 0)
