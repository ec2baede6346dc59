"""Filter banks on a GPU by a kernel of the filter, then `argand.dft`: any length and precision."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.channelise.filter_plan import (
    FILTER_ARGUMENTS,
    FILTER_THREADS,
    FLOAT64,
    FilterChunks,
    FilterForm,
    filter_chunks,
    filter_form,
    filter_name,
    filter_source,
)
from argand.channelise.plan import COMPONENTS, read_as
from argand.channelise.problem import ChanneliseProblem
from argand.device import Device
from argand.dft.api import dft
from argand.dft.cufft import transform_real
from argand.gemm.pairs import Pairs
from argand.runtime.launch import kernel_trace
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import stream_table

_WORKSPACE_BYTES = 256 << 20
"""Largest workspace of transforms of filtered real samples, which are longer than the result."""


def filter_then_transform(
    problem: ChanneliseProblem, x: Any, coefficients: Any, target: Any, device: Device
) -> None:
    """Write the spectra by the filter alone and `argand.dft`, in place where sizes are equal.

    At fp32 and fp64 real samples have cuFFT's transforms of real rows.
    """
    given, component = filtered_samples(problem, x)
    taps = stream_table(coefficients.astype(problem.precision.real_output))
    rows, spectra, precision = problem.rows, problem.spectra, problem.precision
    result = target.reshape(rows, spectra, problem.bins)
    if not problem.real:
        _filter(problem, given, component, taps, result, 0, device)
        dft(result, precision=precision, out=result)
        return
    each = np.dtype(precision.output).itemsize * problem.channels
    most = max(1, _WORKSPACE_BYTES // each)  # spectra
    together, count = max(1, min(rows, most // spectra)), min(spectra, most)
    workspace = cupy.empty(together * count * problem.channels, precision.real_output)
    for row in range(0, rows, together):
        for first in range(0, spectra, count):
            some = result[row : row + together, first : first + count]
            filtered = workspace[: some.size // problem.bins * problem.channels]
            filtered = filtered.reshape(*some.shape[:2], problem.channels)
            _filter(problem, given[row:], component, taps, filtered, first, device)
            if precision.exact_operands:
                transform_real(filtered, some)
            else:
                some[...] = dft(filtered, precision=precision)[..., : problem.bins]


def filtered_samples(problem: ChanneliseProblem, x: Any) -> tuple[Any, str]:
    """Return samples (rows, ...) as the filter reads them, contiguous, and the components' type."""
    single = problem.precision.output == "complex64"
    if isinstance(x, Pairs):
        x = x.array if single and x.format in COMPONENTS else x.to_complex64()
    kept = single and str(x.dtype) in COMPONENTS
    if not kept:
        kind = problem.precision.real_output if problem.real else problem.precision.output
        x = x.astype(kind, copy=False)
    component = str(x.dtype)
    if x.dtype.kind == "c":
        component = "float32" if single else FLOAT64
    x = cupy.ascontiguousarray(x)
    unit = COMPONENTS[component][1] if component in COMPONENTS else 16
    if not problem.real and x.data.ptr % unit:
        x = x.copy()
    return x.reshape(problem.rows, -1), read_as(component, conjugate=problem.conjugate)


def _filter(
    problem: ChanneliseProblem, x: Any, component: str, taps: Any, out: Any, first: int,
    device: Device,
) -> None:  # fmt: skip
    """Write sums of taps to (rows, spectra, channels), of spectra from ``first`` on."""
    rows, count = out.shape[:2]
    chunks = filter_chunks(problem, rows, count, device.sm_count)
    sizes = (problem.channels, problem.taps, problem.hop, problem.phases)
    form = filter_form(problem)
    launch = _launch(component, problem.real, form, sizes, chunks, device)
    launch({
        "x": x.data.ptr, "out": out.data.ptr, "coefficients": taps.data.ptr,
        "samples": problem.samples, "first": first, "count": count, "items": chunks.items,
        "chunks": chunks.chunks, "chunk": chunks.chunk,
    })  # fmt: skip
    if kernel_trace.watching:
        kernel_trace.note(filter_name(component, real=problem.real, form=form))


@lru_cache(maxsize=64)
def _launch(
    component: str, real: bool, form: FilterForm, sizes: tuple[int, int, int, int],
    chunks: FilterChunks, device: Device,
) -> BoundKernel:  # fmt: skip
    channels, taps, hop, phases = sizes
    return bound_kernel(
        filter_source(component, real=real, form=form),
        filter_name(component, real=real, form=form), chunks.blocks, FILTER_THREADS,
        FILTER_ARGUMENTS, device,
        {
            "channels": channels, "taps": taps, "hop": hop, "phases": phases,
            "columns": chunks.columns, "column_blocks": chunks.column_blocks,
        },
    )  # fmt: skip
