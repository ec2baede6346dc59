"""Discrete Fourier transforms: the call that a user makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import all_on_gpu, as_array, check_out, refuse_misaligned
from argand.defaults import default_precision
from argand.device import is_cuda_array, is_cupy_array
from argand.dft import cpu as numpy_dft
from argand.dft.cpu_butterfly import butterfly_dft
from argand.dft.cpu_three_kernel import three_kernel_dft
from argand.dft.cpu_two_pass import two_pass_dft
from argand.dft.heuristics import butterflies_for
from argand.dft.problem import DftProblem, dft_problem, fitted
from argand.dft.rules import RULES
from argand.dft.scipy_transform import prepared
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.repeats import Repeats
from argand.precision import Precision
from argand.rounding import Array
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_CPU_CALLS: NumpyCalls[Callable[[Array], Array]] = NumpyCalls()


@_CPU_CALLS.of_one("out")
def dft(
    cpu_key: Key | None,
    x: Any,
    axis: int = -1,
    *,
    n: int | None = None,
    inverse: bool = False,
    norm: str = "backward",
    precision: str | Precision | None = None,
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Any:
    """Return the discrete Fourier transforms of x along one axis, at a precision.

    Args:
        x: real or complex, any rank from 1 on and any strides; NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU, tensors of torch where they are. It is converted to the
            precision's type first.
        axis: the axis that is transformed.
        n: its length, from 1 to 2^26: x is truncated or filled up with zeros. None is x's own.
        inverse: exp(+2 pi i j k / n) in place of exp(-2 pi i j k / n).
        norm: ``backward`` (1 / n on the inverse), ``ortho`` (1 / sqrt(n) on both) or ``forward``.
        precision, rounding: as in `argand.gemm`; by default fp64 where ``out`` has it, or x where
            there is no ``out``; else fp32 on the CPU and 3xfp16 on a GPU. The errors of 3xfp16 are
            those of fp32 whatever the amplitude, because each transform is scaled by a power of
            two. cuFFT computes fp32 and fp64 on a GPU, SciPy on the CPU; `plan_of` of
            `argand.dft.gpu` says where cuFFT computes other precisions too.
        out: where the result goes. It may be x.

    Returns:
        The shape of x, with n along the axis; complex128 at fp64 and complex64 otherwise.

    Raises:
        ValueError: no axes, an axis out of range, n out of range, an unknown norm or precision, a
            wrong out.
        TypeError: x that holds no numbers; x and out on different devices.

    Example:
        >>> argand.dft(np.array([1.0, 0, 0, 0]))
        array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
        >>> argand.dft(np.ones((2, 3, 5), np.complex64), axis=1).shape
        (2, 3, 5)
    """
    repeat = _KNOWN.get(type(x)) or _REPEATS.of(x)
    options = (axis, n, inverse, norm, precision, rounding, type(axis), type(n), type(inverse))
    key, found = repeat((x,), out, options)
    if found is not None:
        return found
    if has_foreign(x, out):
        return call_on_foreign(
            dft, {"x": x, "out": out}, rules=RULES, axis=axis, n=n, inverse=inverse, norm=norm,
            precision=precision, rounding=rounding,
        )  # fmt: skip
    on_gpu = is_cupy_array(x)
    if not on_gpu:
        x = as_array(x, "x")
    if out is not None:
        all_on_gpu({"x": on_gpu, "out": is_cuda_array(out)})
    if precision is None:
        given = x if out is None else out
        precision = default_precision("transform", (given,), on_gpu=on_gpu)
    problem, axis, shape = dft_problem(x, axis, n, inverse, norm, precision, rounding)
    check_out(out, shape, problem.precision.output)
    if on_gpu:
        refuse_misaligned("x", x)
        return _cuda().dft(problem, x, axis, out, key)
    if problem.precision.exact_operands and x.dtype == problem.precision.output:
        transform = prepared(problem, x, None if n is None else problem.length, axis)
        if out is None:
            _CPU_CALLS.keep(cpu_key, transform)
        return _into(out, transform(x))
    return _into(out, _on_cpu(problem, x, axis))


def _on_cpu(problem: DftProblem, x: Array, axis: int) -> Array:
    """Return the transforms of a checked problem along an axis, by the model of its plan."""
    last = axis == x.ndim - 1  # np.moveaxis takes longer than all else around a short transform
    moved = fitted(x, axis, problem.length)
    if not last:
        moved = np.moveaxis(moved, axis, -1)
    rows = moved.reshape(problem.rows, problem.length)
    rows = rows.astype(problem.precision.output, copy=False)
    plan = None if problem.precision.exact_operands else butterflies_for(problem.length)
    if plan is None:
        found = numpy_dft.dft(problem, rows, problem.method)
    elif isinstance(plan, ThreeKernelPlan):
        found = three_kernel_dft(problem, rows, plan)
    elif isinstance(plan, TwoPassPlan):
        found = two_pass_dft(problem, rows, plan)
    else:
        found = butterfly_dft(problem, rows, plan)
    found = found.reshape(moved.shape)
    return found if last else np.moveaxis(found, -1, axis)


def _into(out: Any, found: Array) -> Any:
    """Return a result, in the memory of ``out`` where it is given."""
    if out is None:
        return found
    out[...] = found
    return out


@cache
def _cuda() -> ModuleType:
    """Return `argand.dft.gpu`, imported once: an import statement takes most of a microsecond."""
    from argand.dft import gpu

    return gpu


_REPEATS = Repeats(lambda: _cuda().CALLS)
_KNOWN = _REPEATS.known
