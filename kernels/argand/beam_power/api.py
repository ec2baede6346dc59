"""`beam_power`, the public call: detected beams. The operands decide where it is computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.beam_power.blocks import Run, in_exact_blocks, prepared
from argand.beam_power.problem import EXACT, Detect, beam_power_problem
from argand.beam_power.rules import adapted
from argand.checks import all_on_gpu, check_numbers, check_out
from argand.defaults import default_precision
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gemm.operands import as_operand, on_gpu
from argand.gemm.pairs import Pairs
from argand.precision import Precision, get_precision
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_CPU_CALLS: NumpyCalls[Run] = NumpyCalls()


def beam_power(
    weights: Any,
    samples: Any,
    *,
    detect: Detect = "power",
    integrate: int = 1,
    precision: str | Precision | None = None,
    out: Any = None,
) -> Any:
    """Return power or Stokes parameters of the beams z = weights samples, summed over time.

    The complex beams are made in blocks and never whole (docs/kernels/beam_power.md).

    Args:
        weights: ``(..., beam, antenna)``.
        samples: ``(..., antenna, time)``. Leading axes broadcast as in numpy.matmul. Either is an
            array or `Pairs`, of any strides; a NumPy structured array of r and i will do as well.
            NumPy arrays are computed on the CPU, CuPy arrays on their GPU.
        detect: ``power`` sums |z|^2. ``stokes`` takes two linear polarizations x and y along the
            last leading axis, ``(..., 2, beam, antenna)`` and ``(..., 2, antenna, time)``, and sums
            I = |x|^2 + |y|^2, Q = |x|^2 - |y|^2, U = 2 Re(x* y) and V = 2 Im(x* y) (van Straten
            et al., "PSRCHIVE and PSRFITS: definition of the Stokes parameters", PASA 2010).
        integrate: samples that are summed to a bin. Those after the last whole bin are not read.
        precision: a name of ``PRECISIONS`` or a dtype, by default that of a product of the operands
            (`argand.gemm`). Operands are rounded to it as there; powers are those of the beams in
            the result's type. ``exact`` takes weights and samples as `Pairs` of int8, whose beams
            are sums of integers.
        out: where the result goes, of its shape and type; it must not overlap the operands.

    Returns:
        ``(..., beam, time // integrate)``, or ``(..., 4, beam, time // integrate)`` of I, Q, U and
        V; float64 at fp64, else float32: sums, with no division, in the squared unit of the beams.
        A sample that is not finite leaves no finite power in its bin.

    Raises:
        ValueError: shapes that do not fit, an unknown detect or precision, an ``integrate`` below
            1, exact beams of anything but int8, a wrong ``out``.
        TypeError: operands that hold no numbers, or some of them on a GPU and others not.
        DeviceError: the device does not have the kernel.

    Example:
        >>> weights = np.array([[1, 1], [1, -1]], np.complex64)  # of two beams
        >>> samples = np.array([[1, 1j], [1, 1j]], np.complex64)  # of two antennas, at two times
        >>> argand.beam_power(weights, samples, integrate=2)
        array([[8.],
               [0.]], dtype=float32)
    """
    key: Key | None
    if type(weights) is type(samples) is np.ndarray and out is None:
        # Most calls of few numbers, for which `NumpyCalls.key` takes long.
        key = (
            weights.dtype, weights.shape, samples.dtype, samples.shape, detect, integrate,
            type(integrate), precision,
        )  # fmt: skip
    else:
        key = _CPU_CALLS.key((weights, samples, out), (detect, integrate, precision))
    repeated = _CPU_CALLS.known(key)
    if repeated is not None:
        if out is not None:
            _check_apart(out, weights, samples)
        return repeated(weights, samples, out)
    if has_foreign(weights, samples, out):
        return call_on_foreign(
            beam_power, {"weights": weights, "samples": samples, "out": out}, adapted=adapted,
            pairs=Pairs, detect=detect, integrate=integrate, precision=precision,
        )  # fmt: skip
    w, x = as_operand(weights, "weights"), as_operand(samples, "samples")
    row = _precision_of(w, x, out, precision)
    problem = beam_power_problem(
        w.shape, x.shape, detect=detect, integrate=integrate, precision=row
    )
    check_out(out, problem.shape, problem.dtype)
    _check_apart(out, w, x)
    if on_gpu(x):
        from argand.beam_power import gpu

        return gpu.beam_power(problem, w, x, out)
    if row == EXACT:
        return in_exact_blocks(problem, w, x, out, np)
    run = prepared(problem, w, x)
    if w is weights and x is samples:
        _CPU_CALLS.keep(key, run)
    return run(w, x, out)


def _precision_of(w: Any, x: Any, out: Any, precision: str | Precision | None) -> Precision:
    """Return the precision of a call. Raises TypeError or ValueError for operands without it."""
    for name, one in (("weights", w), ("samples", x)):
        if not isinstance(one, Pairs):
            check_numbers(name, one)
    named = {"weights": w, "samples": x, "out": out}
    all_on_gpu({name: on_gpu(one) for name, one in named.items() if one is not None})
    if precision is None:
        given = (w, x) if out is None else (out,)
        precision = default_precision("product", given, on_gpu=on_gpu(x))
    row = EXACT if precision == EXACT.name else get_precision(precision)
    if row == EXACT and not all(isinstance(one, Pairs) and one.format == "int8" for one in (w, x)):
        found = [one.format if isinstance(one, Pairs) else str(one.dtype) for one in (w, x)]
        raise ValueError(f"exact beams need weights and samples as pairs of int8, got {found}")
    return row


def _check_apart(out: Any, weights: Any, samples: Any) -> None:
    if out is not None and any(_share(out, one) for one in (weights, samples)):
        raise ValueError("out must not overlap weights or samples")


def _share(out: Any, x: Any) -> bool:
    """Return whether an operand and the result may have memory in common."""
    parts = x.array if isinstance(x, Pairs) else x
    if on_gpu(parts):
        import cupy

        return bool(cupy.may_share_memory(out, parts))
    return np.may_share_memory(out, parts)
