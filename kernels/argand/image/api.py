"""`image`, the public call: power over directions. The covariances decide where it computes."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import (
    all_on_gpu,
    as_array,
    as_real,
    check_contiguous,
    check_numbers,
    check_out,
    refuse_misaligned,
)
from argand.defaults import default_precision
from argand.device import array_module, is_cuda_array, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.image.cpu import Run, prepared
from argand.image.geometry import read_directions, read_positions
from argand.image.problem import ImageProblem
from argand.image.rules import adapted
from argand.precision import Precision, get_precision
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_ndarray = np.ndarray
_CPU_CALLS: NumpyCalls[Run] = NumpyCalls()


def image(
    covariances: Any,
    positions: Any,
    frequencies: Any,
    directions: Any,
    *,
    precision: str | Precision | None = None,
    sign: int = 1,
    out: Any = None,
) -> Any:
    """Return the power over directions, P(d) = sum over channels c of w_c(d)^H R_c w_c(d).

    The weights are w_ca(d) = exp(sign 2 pi i f_c x_a . s(d) / c): those of
    Bartlett's beamformer (Krim and Viberg, "Two decades of array signal processing research", 1996,
    section III). With R the mean of v v^H, and v_a = exp(2 pi i f / c x_a . s) of a wave from s,
    sign 1 adds a source coherently: a wave of power p at each antenna has the power antennas^2 p.
    Weights and R w are made in blocks and never whole (docs/kernels/image.md).

    Args:
        covariances: ``(..., channel, antenna, antenna)``, Hermitian, complex or real, of any
            strides. NumPy arrays are computed on the CPU, CuPy arrays on their GPU. P is linear in
            them, so covariances of several times or polarizations whose images are to be added are
            best added first.
        positions: ``(antenna, 3)`` or ``(antenna, 2)`` (in the plane of l and m), in metres, of any
            origin.
        frequencies: ``(channel,)`` in Hz, positive.
        directions: ``(direction, 2)`` of l and m, with n = sqrt(1 - l^2 - m^2), or
            ``(direction, 3)`` vectors of l, m and n, no longer than 1. They are along the axes of
            the positions: east, north and up, say.
        precision: a name of ``PRECISIONS``, by default that of a product of the covariances: fp64
            where ``out`` has it, or they where there is no ``out``; else fp32 on the CPU and 3xtf32
            on a GPU. R (after scaling each matrix by a power of two where the precision scales) and
            the weights are rounded to its operand; phases are reduced in fp64. On a GPU up to 24
            antennas are imaged in fp32, except at fp64; more antennas by cuBLAS at fp64 and fp32.
        sign: 1 or -1, of the exponent of the weights.
        out: where the result goes, C-contiguous, of its shape and type.

    Positions, frequencies and directions are read as float64; NumPy arrays will do beside CuPy's
    covariances. A call on a GPU waits for it once: directions and covariances are checked there,
    beside the power, so what ``out`` holds after an error is undefined.

    Returns:
        ``(..., direction)``, float64 at fp64, else float32: in the unit of the covariances, with
        no division. A channel that is not finite leaves no finite power; without channels or
        antennas it is 0.

    Raises:
        ValueError: shapes that do not fit, an unknown precision or sign, positions, frequencies or
            directions that are not finite, a frequency that is not positive, a direction longer
            than 1, an antenna more than 2^20 wavelengths from the array's centre, or a covariance
            that is not Hermitian within rounding (2^-6 of its largest entry).
        TypeError: arrays that hold no numbers, or complex ones where real ones are needed.
        DeviceError: the device does not have the kernel.

    Example:
        >>> positions = np.array([[0.0, 0, 0], [10.0, 0, 0]])  # metres
        >>> directions = np.array([[0.0, 0, 1], [1.0, 0, 0]])  # towards the zenith, and a horizon
        >>> covariances = np.ones((1, 2, 2), np.complex64)  # of a source at the zenith
        >>> argand.image(covariances, positions, [37.5e6], directions).round(1)
        array([4., 2.], dtype=float32)
    """
    form = _form_of(covariances, positions, frequencies, directions, out, precision, sign)
    repeated = _CPU_CALLS.known(form)
    if repeated is not None:
        return repeated(covariances, positions, frequencies, directions, out)
    given, key = (covariances, positions, frequencies, directions), None
    if is_cupy_array(covariances):
        key, found = _cuda().CALLS.repeat(given, out, (precision, sign))
        if found is not None:
            return found
    if has_foreign(covariances, positions, frequencies, directions, out):
        named = {
            "covariances": covariances, "positions": positions, "frequencies": frequencies,
            "directions": directions, "out": out,
        }  # fmt: skip
        return call_on_foreign(image, named, adapted=adapted, precision=precision, sign=sign)
    gpu = is_cuda_array(covariances)
    r = _checked_covariances(covariances, gpu)
    if precision is None:
        precision = default_precision("product", (r if out is None else out,), on_gpu=gpu)
    row = get_precision(precision)
    _check_square(r)
    if (number := as_real(sign, "sign")) not in (1, -1):
        raise ValueError(f"sign must be 1 or -1, got {sign!r}")
    channels, antennas = r.shape[-3], r.shape[-1]
    arrays = array_module(directions) if gpu else np
    x, f = read_positions(positions, frequencies, antennas, channels)
    s = read_directions(directions, arrays)
    problem = ImageProblem(r.shape[:-3], channels, antennas, len(s), row, int(number))
    check_out(out, problem.shape, problem.dtype)
    if out is not None:
        all_on_gpu({"covariances": gpu, "out": is_cuda_array(out)})
    check_contiguous("out", out)
    if gpu:
        return _cuda().image(problem, given, x, f, s, out, key)
    run = prepared(problem, r.dtype)
    _CPU_CALLS.keep(form, run)
    return run(r, x, f, s, out)


def _form_of(r: Any, x: Any, f: Any, s: Any, out: Any, precision: Any, sign: Any) -> Key | None:
    """Return the key of calls of one form, None where an operand is no array of NumPy's.

    `NumpyCalls.key`, which takes any operands, takes longer.
    """
    if not (type(r) is type(x) is type(f) is type(s) is _ndarray):
        return None
    form = (
        precision, sign, type(precision), type(sign),
        r.dtype, r.shape, x.dtype, x.shape, f.dtype, f.shape, s.dtype, s.shape,
    )  # fmt: skip
    if out is None:
        return form
    return (*form, out.dtype, out.shape, out.strides) if type(out) is _ndarray else None


def _checked_covariances(covariances: Any, gpu: bool) -> Any:
    """Return covariances as an array. Raises TypeError for what holds no numbers."""
    refuse_misaligned("covariances", covariances)
    r = covariances if gpu else as_array(covariances, "covariances")
    check_numbers("covariances", r)
    return r


def _check_square(r: Any) -> None:
    """Raise ValueError for covariances that are no square matrices of channels."""
    if r.ndim < 3 or r.shape[-1] != r.shape[-2]:
        raise ValueError(
            f"covariances must have shape (..., channel, antenna, antenna), got {r.shape}"
        )


@cache
def _cuda() -> ModuleType:
    """Return `argand.image.gpu`, imported once: an import statement takes most of a microsecond."""
    from argand.image import gpu

    return gpu
