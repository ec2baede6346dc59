"""Images on a GPU: our kernels, and blocks of directions through cuBLAS."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Device, array_module, gpu, is_cupy_array
from argand.image.blocks import image_in_blocks
from argand.image.geometry import centred, unit_vectors
from argand.image.hermitian_check import require_hermitian
from argand.image.heuristics import PLAN_OVERRIDE, Plan, plan_image
from argand.image.launches import ImageLaunches
from argand.image.problem import ImageProblem, as_complex
from argand.runtime.calls.call_cache import (
    SEVERAL,
    CallCache,
    Form,
    Key,
    NoFormError,
    current_device,
)
from argand.runtime.calls.kept_call import Chosen
from argand.runtime.calls.layout import device_of, may_overlap


def _form_of(x: Any) -> Form:
    """Return the form of positions or frequencies on the host, which launches copy."""
    if type(x) is not np.ndarray:
        raise NoFormError(type(x).__name__)
    return x.dtype.str, x.shape, current_device() if SEVERAL else 0


CALLS = CallCache(PLAN_OVERRIDE, form_of=_form_of)
"""Calls by the forms of covariances and directions on a GPU, and of the others on the host."""


def image(
    problem: ImageProblem, given: tuple[Any, ...], x: Any, f: Any, s: Any, out: Any, key: Key | None
) -> Any:
    """Return the power of a problem on the GPU that holds the covariances.

    Args:
        problem: the sizes and the precision.
        given: covariances, positions, frequencies and directions as the caller gave them.
        x, f, s: the last three as they were read; the first two are checked.
        out: where the result goes, or None.
        key: the key of the call cache.

    Raises ValueError for directions that are no unit vectors and covariances that are not
    Hermitian, PlanError for a plan override that is not legal, and CompileError where NVRTC fails.

    Memory beside the operands: a copy where covariances are not contiguous complex64, or directions
    not contiguous vectors of float64, the power of each split of the channels, and beyond few
    antennas packed covariances, (1 + 64 / antennas) 2 antennas^2 numbers of the operand for each
    term.
    """
    r = given[0]
    with device_of(r, out):
        device = gpu(cupy.cuda.Device().id)
        plan = plan_image(problem, device)
        empty = not (problem.matrices and problem.channels and problem.antennas)
        if plan is None or empty or not problem.directions:
            vectors = unit_vectors(s, array_module(s))
            require_hermitian(r, cupy)
            return image_in_blocks(problem, r, centred(x), f, vectors, out, cupy)
        with np.errstate(over="ignore"):
            covariances = cupy.ascontiguousarray(as_complex(r), np.complex64)
        directions = cupy.asarray(s)
        launches = _launches(problem, plan, s.shape[1], device)
        read = covariances, directions
        in_place = out is not None and not any(may_overlap(out, one) for one in read)
        target = out if in_place else cupy.empty(problem.shape, problem.dtype)
        if not launches(covariances.data.ptr, x, f, directions.data.ptr, target.data.ptr):
            unit_vectors(s, array_module(s))
            require_hermitian(r, cupy)
        if _repeats(given, covariances, directions) and (in_place or out is None):
            chosen = Chosen(launches.name, plan)
            CALLS.keep(
                key, RepeatedImage(launches), given, target, problem.shape, problem.dtype,
                chosen=chosen,
            )  # fmt: skip
        if out is None or in_place:
            return target
        out[...] = target
        return out


def _repeats(given: tuple[Any, ...], covariances: Any, directions: Any) -> bool:
    """Return whether launches read a call's arrays as given: two on the GPU, two on the host."""
    r, x, f, s = given
    on_host = type(x) is type(f) is np.ndarray
    if not (on_host and is_cupy_array(s)):
        return False
    return bool(covariances.data.ptr == r.data.ptr and directions.data.ptr == s.data.ptr)


@lru_cache(maxsize=256)
def _launches(problem: ImageProblem, plan: Plan, columns: int, device: Device) -> ImageLaunches:
    return ImageLaunches(problem, plan, columns, device)


class RepeatedImage:
    """The run of a kept call: one whose operands look wrong is made again to say why."""

    def __init__(self, launches: ImageLaunches) -> None:
        self._launches = launches

    def __call__(self, r: int, x: Any, f: Any, s: int, out: int) -> Any:
        """Run it, and wait for the GPU."""
        return None if self._launches(r, x, f, s, out) else NotImplemented

    def without_wait(self, r: int, x: Any, f: Any, s: int, out: int) -> None:
        """Queue it; the power of operands that look wrong is NaN."""
        self._launches.queue(r, x, f, s, out)
