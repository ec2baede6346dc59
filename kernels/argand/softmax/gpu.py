"""Softmax on a GPU: launches the kernels of ``cuda/softmax/kernel.cuh``.

A call of a form that was seen before (shapes, strides, alignments, options) only fills in
addresses: few long rows take the card less time than planning takes Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cupy

from argand.device import Device, gpu
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.call_cache import Remembered
from argand.runtime.kernel import BoundKernel, clusters_at_once
from argand.runtime.layout import one_stride, place
from argand.runtime.plan_override import Forced
from argand.runtime.workspace import zeroed
from argand.softmax import tuned as softmax_tuning
from argand.softmax.api import SoftmaxProblem
from argand.softmax.heuristics import choose_vector, plan_softmax
from argand.softmax.plan import (
    PORTABLE_CLUSTER,
    SoftmaxForm,
    SoftmaxPlan,
    check_row,
    check_softmax_plan,
    vector_for,
)
from argand.softmax.source import ARGUMENTS, kernel_name, scale_arguments, softmax_source

_DTYPE = arguments_dtype(ARGUMENTS)
_LARGEST_GRID = 2**31 - 1
_ALIGNMENT = 15
"""Low bits of an address that can matter to a plan."""
_NON_PORTABLE_CLUSTERS = 14
"""``CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED``."""

Key = tuple[Any, ...]
forced: Forced[tuple[SoftmaxPlan, int]] = Forced()
"""The plan of every softmax within ``forced.to((plan, vector))``: for tests and measurements.

``vector`` is how many values an access takes, where the arrays allow it.
"""


def softmax(problem: SoftmaxProblem, x: Any, out: Any, key: Key | None) -> Any:
    """Solve a SoftmaxProblem on the GPU that holds x; ``out`` is checked.

    ``key`` is of `key_of` where x is the caller's own. Raises CompileError where NVRTC fails.
    """
    with place(x):
        mine = x
        if _row_stride(x, x.ndim - 1) is None:
            mine = cupy.ascontiguousarray(x)
        axes = len(problem.result_shape) - (problem.operation != "logsumexp")
        usable = out is not None and _row_stride(out, axes) is not None and not _clashes(mine, out)
        target = out if usable else cupy.empty(problem.result_shape, problem.result_type)
        if target.size:
            launch = SoftmaxLaunch(problem, mine, target)
            launch(mine.data.ptr, target.data.ptr)
            if key is not None and mine is x and (out is None or usable) and not forced.active:
                _kept[key] = launch
        if out is not None and target is not out:
            out[...] = target
            return out
        return target


def key_of(operation: str, x: Any, out: Any, options: tuple[Any, ...]) -> Key | None:
    """What identifies calls of one form; None for those that are looked at anew each time."""
    if forced.active or type(x) is not cupy.ndarray:
        return None
    device = cupy.cuda.runtime.getDevice()
    if x.data.device_id != device:
        return None
    form = None
    if out is not None:
        if type(out) is not cupy.ndarray or out.data.device_id != device:
            return None
        form = (out.shape, out.strides, out.dtype.char, out.data.ptr & _ALIGNMENT)
    key = (
        operation, x.shape, x.strides, x.dtype.char, x.data.ptr & _ALIGNMENT, form, options, device,
        softmax_tuning.TABLE.generation,
    )  # fmt: skip
    try:
        hash(key)
    except TypeError:  # a rounding given as a list
        return None
    return key


def repeat(key: Key, x: Any, out: Any) -> Any:
    """The result of a call of a form that was seen; None where it was not, or arrays overlap."""
    launch = _kept.get(key)
    if launch is None:
        return None
    if out is None:
        out = cupy.empty(launch.result_shape, launch.result_type)
    elif _clashes(x, out):
        return None
    launch(x.data.ptr, out.data.ptr)
    return out


@dataclass(frozen=True)
class _Side:
    """An array as the kernels see it: where it begins and how far apart rows are, in elements."""

    first: int
    stride: int


class SoftmaxLaunch:
    """Everything that one softmax takes, for arrays of these forms at any address."""

    def __init__(self, problem: SoftmaxProblem, x: Any, out: Any) -> None:
        self.result_shape = problem.result_shape
        self.result_type = problem.result_type
        device = gpu(cupy.cuda.Device().id)
        arch = device.require_arch()
        reduced = problem.operation == "logsumexp"
        read = _side(x, x.ndim - 1)
        written = _side(out, out.ndim - (not reduced))
        form = softmax_form(problem, read, None if reduced else written)
        self.form = form
        self.plan = (
            plan_softmax(
                form,
                arch,
                rows=problem.rows,
                columns=problem.columns,
                cores=device.cores,
                measured=softmax_tuning.lookup(form, problem.rows, problem.columns, device.index),
            )
            if forced.value is None
            else forced.value[0]
        )
        check_softmax_plan(self.plan, form, arch)
        check_row(self.plan, form, problem.columns)
        self._rows = problem.rows
        self._extent = (max(0, problem.rows - 1) * max(0, read.stride) + problem.columns) * int(
            x.dtype.itemsize
        )
        self._item_strides = (read.stride * x.dtype.itemsize, written.stride * out.dtype.itemsize)
        shared = self.plan.shared_bytes(form)
        kernel = nvrtc.load(
            softmax_source(form, self.plan), arch.target, kernel_name(form, self.plan), shared
        )
        if self.plan.cluster > PORTABLE_CLUSTER and not self.plan.ring:
            cupy.cuda.driver.funcSetAttribute(kernel.ptr, _NON_PORTABLE_CLUSTERS, 1)
        most = _LARGEST_GRID
        if self.plan.staged or self.plan.ring:
            most = _at_once(kernel.ptr, self.plan, shared, device)
        values = {
            "x": 0, "x_end": 0, "out": 0, "rows": 0, "columns": problem.columns,
            "x_stride": read.stride, "out_stride": written.stride,
            "places": 0, "slice": self.plan.slice, "stages": self.plan.stages,
            "lag": self.plan.lag, **scale_arguments(problem.scale),
        }  # fmt: skip
        self._step = _LARGEST_GRID // self.plan.cluster * self.plan.rows_a_block
        self._launches = {}
        for rows in {min(self._step, problem.rows), problem.rows % self._step or self._step}:
            blocks = -(-rows // self.plan.rows_a_block) * self.plan.cluster
            self._launches[rows] = BoundKernel(
                kernel, min(blocks, most), self.plan.block_threads, Arguments(_DTYPE, values),
                shared_bytes=shared, together=self.plan.ring and self.plan.cluster > 1,
            )  # fmt: skip
        # Teams of a launch: no more than its rows, as `blocks` above.
        teams = min(most // self.plan.cluster, self._step, self._rows)
        self._exchange_bytes = self.plan.exchange_bytes(teams) if self.plan.ring else 0

    def __call__(self, x: int, out: int) -> None:
        """Queue it on the current stream, for arrays at these addresses.

        More rows than a grid has blocks for take several launches.
        """
        places = zeroed(self._exchange_bytes) if self._exchange_bytes else 0
        for start in range(0, self._rows, self._step):
            rows = min(self._step, self._rows - start)
            self._launches[rows]({
                "x": x + start * self._item_strides[0], "x_end": x + self._extent,
                "out": out + start * self._item_strides[1], "rows": rows, "places": places,
            })  # fmt: skip


def _at_once(function: int, plan: SoftmaxPlan, shared: int, device: Device) -> int:
    """How many blocks that stay run at a time, whole clusters or teams.

    Fewer clusters than multiprocessors have room for: those of a cluster are neighbours.
    """
    if plan.cluster == 1 or plan.ring:
        each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            function, plan.block_threads, shared
        )
        found = int(each) * device.cores // plan.cluster * plan.cluster
        if found == 0:
            raise RuntimeError(f"{plan} does not fit on {device.name}")
        return found
    found = clusters_at_once(function, plan.cluster, plan.block_threads, shared)
    if found == 0:
        raise RuntimeError(f"{plan} does not fit on {device.name}")
    return found * plan.cluster


_kept: Remembered[Key, SoftmaxLaunch] = Remembered()


def softmax_form(problem: SoftmaxProblem, read: _Side, written: _Side | None) -> SoftmaxForm:
    """What a kernel for these arrays is made for; ``written`` is None where it writes no rows.

    A vector begins at the same column in x and in the result, or there are none.
    """
    most = vector_for(problem.input, problem.input if written is None else problem.output)
    one_row = problem.rows <= 1
    if written is not None and (
        (read.first - written.first) % most
        or (not one_row and (read.stride - written.stride) % most)
    ):
        most = 1
    # What divides all of these has no edges.
    even = math.gcd(most, read.first, problem.columns, 0 if one_row else read.stride)
    if forced.value is None:
        vector = choose_vector(most, even, problem.columns)
    else:
        vector = min(most, forced.value[1])
    return SoftmaxForm(
        problem.operation, problem.input, problem.output, problem.precision,
        vector, even % vector > 0, problem.scale == 1,
    )  # fmt: skip


def _side(x: Any, leading: int) -> _Side:
    return _Side(x.data.ptr // x.dtype.itemsize, _row_stride(x, leading) or 0)


def _row_stride(x: Any, leading: int) -> int | None:
    """Elements from row to row; None where columns are not contiguous or rows have no one stride.

    ``leading`` axes count rows.
    """
    item = x.dtype.itemsize
    if leading < x.ndim and x.shape[-1] > 1 and x.strides[-1] != item:
        return None
    if x.data.ptr % item or any(stride % item for stride in x.strides):
        return None
    stride = one_stride(x.shape[:leading], x.strides[:leading])
    return None if stride is None else stride // item


def _clashes(x: Any, out: Any) -> bool:
    """Whether writing out would change rows of x not yet read: in place alone is safe."""
    repeats = any(s == 0 and n > 1 for n, s in zip(out.shape, out.strides, strict=True))
    same = out.data.ptr == x.data.ptr and out.strides == x.strides and out.dtype == x.dtype
    return bool(repeats or (not same and cupy.may_share_memory(x, out)))
