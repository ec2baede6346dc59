"""Unfused spectral estimates on a GPU: windowed segments to memory, their transforms, squares."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Device
from argand.dft.api import dft
from argand.dft.cufft import transform_real
from argand.gemm.pairs import Pairs
from argand.multiprocessor import WARP
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import stream_table
from argand.spectrum.gpu_trend import trends_of
from argand.spectrum.plan import (
    SUM_ARGUMENTS,
    THREADS,
    WINDOW_ARGUMENTS,
    bin_factors,
    sum_name,
    sum_source,
    window_name,
    window_source,
)
from argand.spectrum.problem import SpectrumProblem

WORKSPACE_BYTES = 256 << 20
"""Largest workspace of windowed segments and their transforms; at least one segment."""
_PART_TERMS = 256
"""Most terms that a thread block sums, so that few bins of many segments have many blocks."""
_BLOCKS = 16
"""Most blocks of a kernel on a multiprocessor."""


def unfused(
    problem: SpectrumProblem, x: Any, coefficients: Any, target: Any, device: Device
) -> None:
    """Write the means of (..., groups, bins), slab by slab of as many segments as have room.

    Real samples have cuFFT's transforms of real rows, complex ones `argand.dft` in place.
    """
    precision = problem.precision
    if isinstance(x, Pairs):
        x = x.to_complex64()
    kind = precision.real_output if problem.real else precision.output
    given = cupy.ascontiguousarray(x.astype(kind, copy=False))
    window = stream_table(coefficients.astype(precision.real_output))
    trends = trends_of(problem, given, device)
    rows = target.reshape(-1, problem.bins)
    average, all_segments = problem.average, len(rows) * problem.average
    item = np.dtype(precision.output).itemsize
    each = item * (problem.length // 2 + problem.half if problem.real else problem.length)
    most = min(all_segments, max(1, WORKSPACE_BYTES // each))
    if average <= most:
        most -= most % average
    workspace = cupy.empty((most, problem.length), kind)
    bins = cupy.empty((most, problem.half), precision.output) if problem.real else workspace

    def transformed(first: int, stop: int) -> Any:
        some, found = workspace[: stop - first], bins[: stop - first]
        _window(problem, given, window, trends, some, first, device)
        if problem.real:
            transform_real(some, found)
        else:  # conjugates have the squares of the other sign's transform
            dft(some, inverse=problem.conjugate, norm=problem.norm, precision=precision, out=some)
        return found

    if average <= most:
        for first in range(0, all_segments, most):
            stop = min(first + most, all_segments)
            found = transformed(first, stop).reshape(-1, average, problem.half)
            add_terms(problem, found, rows[first // average : stop // average], device)
        return
    starts = range(0, average, most)
    partial = cupy.empty((1, len(starts), problem.half), np.float64)
    for group in range(len(rows)):
        for index, start in enumerate(starts):
            begin = group * average
            found = transformed(begin + start, begin + min(start + most, average))
            add_terms(problem, found[None], partial[0, index], device, partial=True)
        add_terms(problem, partial, rows[group : group + 1], device)


def add_terms(
    problem: SpectrumProblem, terms: Any, out: Any, device: Device, *, partial: bool = False
) -> None:
    """Write the means over terms of (rows, terms, bins): sums in fp64, or spectra to be squared.

    ``out`` is (rows, bins) of the result, or with ``partial`` (rows, computed bins) of fp64.
    """
    rows, count = terms.shape[:2]
    parts = -(-count // _PART_TERMS)
    if parts > 1:
        sums = cupy.empty((rows, parts, problem.half), np.float64)
        _sum(problem, terms, sums, device, parts=parts, partial=True)
        add_terms(problem, sums, out, device, partial=partial)
        return
    _sum(problem, terms, out, device, parts=1, partial=partial)


def _sum(
    problem: SpectrumProblem, terms: Any, out: Any, device: Device, *, parts: int, partial: bool
) -> None:
    rows, count, stride = terms.shape
    blocks = min(-(-rows * parts * problem.half // WARP), _BLOCKS * device.sm_count)
    launch = _sum_launch(problem, str(terms.dtype), partial, blocks, device)
    launch({
        "from": terms.data.ptr, "out": out.data.ptr, "rows": rows, "terms": count,
        "parts": parts, "part_terms": min(count, _PART_TERMS), "stride": stride,
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(sum_name(str(terms.dtype), problem.dtype))


def _window(
    problem: SpectrumProblem, x: Any, window: Any, trends: Any, out: Any, first: int, device: Device
) -> None:
    blocks = min(-(-out.size // THREADS), _BLOCKS * device.sm_count)
    launch = _window_launch(problem, str(out.dtype), blocks, device)
    launch({
        "x": x.data.ptr, "out": out.data.ptr, "window": window.data.ptr,
        "trends": 0 if trends is None else trends.data.ptr, "first": first, "count": len(out),
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(window_name(str(out.dtype)))


@lru_cache(maxsize=64)
def _window_launch(
    problem: SpectrumProblem, dtype: str, blocks: int, device: Device
) -> BoundKernel:
    return bound_kernel(
        window_source(dtype), window_name(dtype), blocks, THREADS, WINDOW_ARGUMENTS, device,
        {
            "row_stride": problem.samples, "hop": problem.hop, "segments": problem.segments,
            "length": problem.length,
        },
    )  # fmt: skip


@lru_cache(maxsize=64)
def _sum_launch(
    problem: SpectrumProblem, term: str, partial: bool, blocks: int, device: Device
) -> BoundKernel:
    return bound_kernel(
        sum_source(term, problem.dtype), sum_name(term, problem.dtype), blocks, THREADS,
        SUM_ARGUMENTS, device,
        bin_factors(problem) | {"computed": problem.half, "partial": int(partial)},
    )  # fmt: skip
