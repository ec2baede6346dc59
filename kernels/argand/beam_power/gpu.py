"""Beam power on a GPU: our kernel, and blocks of bins through cuBLAS at fp64 and fp32."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.beam_power.blocks import in_blocks, in_exact_blocks
from argand.beam_power.few_beams_heuristics import takes_few_beams
from argand.beam_power.heuristics import AnyPlan, KernelForm, takes_exact
from argand.beam_power.launch import BeamPowerLaunch
from argand.beam_power.plan import Samples
from argand.beam_power.problem import EXACT, BeamPowerProblem
from argand.device import Device, gpu
from argand.gemm.pairs import Pairs
from argand.gemm.pairs_launch import words
from argand.precision import Precision
from argand.runtime.calls.layout import Batched, batched, device_of
from argand.runtime.plans.plan_override import PlanOverride

PLAN_OVERRIDE: PlanOverride[AnyPlan] = PlanOverride()
"""Within ``PLAN_OVERRIDE.use(plan)`` every call takes this plan's sizes."""


def beam_power(problem: BeamPowerProblem, w: Any, x: Any, out: Any) -> Any:
    """Return the result of a problem whose arguments are checked, on the GPU that holds them.

    Memory beside the operands: packed weights, a copy of samples that the kernel does not read in
    place (`form_of`), and sums of parts of bins longer than a tile. Raises PlanError for a plan
    override that is not legal, and CompileError where NVRTC fails.
    """
    with device_of(x, w, out):
        if problem.precision == EXACT:
            if not takes_exact(problem, gpu(cupy.cuda.Device().id).require_arch()):
                return in_exact_blocks(problem, w, x, out, cupy)
        elif problem.precision.exact_operands:
            arch = gpu(cupy.cuda.Device().id).require_arch()
            few = takes_few_beams(problem, problem.precision, "complex64", arch)
            if problem.precision.output != "complex64" or not few:
                return in_blocks(problem, w, x, out, cupy)
        contiguous = out is not None and out.flags.c_contiguous
        target = out if contiguous else cupy.empty(problem.shape, problem.dtype)
        if target.size and problem.antennas:
            _computed(problem, w, x, target, gpu(cupy.cuda.Device().id))
        elif target.size:
            target[...] = 0
        if out is not None and not contiguous:
            out[...] = target
            return out
        return target


def form_of(precision: Precision, x: Any) -> tuple[Precision, Samples]:
    """Return the precision at which our kernel computes, and how it reads samples.

    Pairs of int8, and pairs of the precision's own 16-bit format where it has one term, are read in
    place; all others become complex64. Pairs are not scaled: they are multiplied where nothing
    needs to be (`Precision.without_scales`), in as many bits.
    """
    if precision == EXACT:
        return precision, "int8"
    one = precision.operand.bytes == 2 and precision.terms == 1
    if isinstance(x, Pairs) and one and x.format in (precision.operand.name, "int8"):
        return precision, "int8" if x.format == "int8" else "half"
    return precision.without_scales or precision, "complex64"


def _computed(problem: BeamPowerProblem, w: Any, x: Any, target: Any, device: Device) -> None:
    """Compute the power into ``target``; where bins are summed in parts, add these."""
    precision, samples = form_of(problem.precision, x)
    weights, many = _weights(problem, w)
    view = _samples(problem, x, samples)
    layout = view.layout
    form = KernelForm(
        problem, precision, samples, many, layout.row_stride, layout.batch_stride,
        layout.aligned >= 16, PLAN_OVERRIDE.value,
    )  # fmt: skip
    launch = _prepared(form, device)
    parts = target
    if launch.slices > 1:
        parts = cupy.empty((*target.shape, launch.slices), np.float32)
    launch(weights.data.ptr, view.array.data.ptr, parts.data.ptr)
    if parts is not target:
        cupy.sum(parts, axis=-1, out=target)


def _weights(problem: BeamPowerProblem, w: Any) -> tuple[Any, bool]:
    """Return contiguous complex64 weights, and whether each product has its own.

    Those of exact beams stay int8, a word each.
    """
    if isinstance(w, Pairs):
        w = words(w) if problem.precision == EXACT else w.to_complex64()
    many = math.prod(w.shape[:-2]) > 1
    if many:
        w = cupy.broadcast_to(w, (*problem.operand_batch, *w.shape[-2:]))
    with np.errstate(over="ignore"):
        kept = w.dtype if problem.precision == EXACT else np.complex64
        return cupy.ascontiguousarray(w, kept), many


def _samples(problem: BeamPowerProblem, x: Any, samples: Samples) -> Batched:
    """Return samples as the kernel reads them: contiguous along time, a word each."""
    if samples == "complex64":
        given = x.to_complex64() if isinstance(x, Pairs) else x
        with np.errstate(over="ignore"):
            given = given.astype(np.complex64, copy=False)
    else:
        given = words(x)
    if given.strides[-1] != given.dtype.itemsize and given.shape[-1] > 1:
        given = cupy.ascontiguousarray(given)
    return batched(given, problem.operand_batch)


@lru_cache(maxsize=256)
def _prepared(form: KernelForm, device: Device) -> BeamPowerLaunch:
    return BeamPowerLaunch(form, device)
