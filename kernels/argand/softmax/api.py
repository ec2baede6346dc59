"""Softmax over an axis: the calls that a user makes.

One pass over tiles of a row with a running maximum m and a running sum z,

    m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~,

the formulation of Composable Kernel's tile softmax: no element is read twice to find the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import (
    all_on_gpu,
    as_array,
    as_axis,
    as_flag,
    as_real,
    check_out,
    refuse_misaligned,
    type_name,
)
from argand.defaults import default_precision
from argand.device import is_cuda_array, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.repeats import Repeats
from argand.precision import get_precision
from argand.runtime.calls.array_context import context_of
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls
from argand.softmax.finite_rows import Run, prepared
from argand.softmax.formats import Operation, as_kind, output_kind
from argand.softmax.problem import SoftmaxProblem
from argand.softmax.rules import rules_by_operation

_CPU_CALLS: NumpyCalls[Run] = NumpyCalls()
LARGEST_SCALE = 2.0**60
"""Largest factor s of the exponents, and the reciprocal of the smallest one.

Products of such factors with powers of two stay in the range of fp32."""


def softmax(
    x: Any,
    axis: int = -1,
    *,
    precision: Any = None,
    rounding: Sequence[str] | str | None = None,
    scale: float = 1.0,
    power: bool = False,
    format: str | None = None,
    output: str | None = None,
    out: Any = None,
) -> Any:
    """Return the softmax of x over an axis at a precision: exp(s x) / sum(exp(s x)).

    Args:
        x: any rank from 1 on, any strides. NumPy arrays are computed on the CPU, CuPy arrays on
            their GPU. Float16, float32, float64 and bf16 are read as they are, other real types
            converted. It is rounded to the precision's operand, at fp16 and 3xfp16 to its bits
            whatever the exponent; exponentials and sums are taken in the accumulator's type.
        axis: the axis that is summed over.
        precision, rounding: as in `argand.gemm`; by default fp64 where ``out`` has it, or x where
            there is no ``out``; else fp32.
        scale: s, an inverse temperature, positive and within 2^60 of 1.
        power: x is complex, and its squared magnitude, rounded once, takes the place of x.
        format: ``"bf16"`` where x holds the bits of bf16 as uint16; arrays of ml_dtypes' bfloat16
            need none.
        output: fp64, fp32, fp16 or bf16 (as uint16) for the result; where it is left out, fp64 at
            fp64 and fp32 otherwise.
        out: where the result goes. It may be x, or overlap it in any way.

    Returns:
        The shape of x. As in SciPy a row of -inf alone, or with +inf or NaN in it, becomes NaN.

    Raises:
        ValueError: a zero-dimensional x, no columns, complex numbers without ``power`` or others
            with it, an unknown precision or kind, a scale out of range, a wrong out.
        TypeError: x and out on different devices.

    Example:
        >>> argand.softmax(np.log([[1.0, 3.0]]))
        array([[0.25, 0.75]])
    """
    options = (precision, rounding, scale, power, format, output)
    return _dispatch("softmax", x, axis, out, options)


def log_softmax(
    x: Any,
    axis: int = -1,
    *,
    precision: Any = None,
    rounding: Sequence[str] | str | None = None,
    scale: float = 1.0,
    power: bool = False,
    format: str | None = None,
    output: str | None = None,
    out: Any = None,
) -> Any:
    """Return s x - log(sum(exp(s x))) over an axis; arguments and errors as in `softmax`.

    As in SciPy a row of -inf alone, or with NaN in it, becomes NaN; in a row with +inf that element
    becomes NaN and all others -inf.

    Example:
        >>> argand.log_softmax(np.zeros((1, 4))).round(3)
        array([[-1.386, -1.386, -1.386, -1.386]])
    """
    options = (precision, rounding, scale, power, format, output)
    return _dispatch("log_softmax", x, axis, out, options)


def logsumexp(
    x: Any,
    axis: int = -1,
    *,
    precision: Any = None,
    rounding: Sequence[str] | str | None = None,
    scale: float = 1.0,
    power: bool = False,
    format: str | None = None,
    output: str | None = None,
    out: Any = None,
) -> Any:
    """Return log(sum(exp(s x))) over an axis, which the result lacks.

    Arguments and errors as in `softmax`. As in SciPy a row with NaN in it gives NaN, one with +inf
    gives +inf, and one of -inf alone gives -inf.

    Example:
        >>> argand.logsumexp(np.zeros((2, 4))).round(3)
        array([1.386, 1.386])
    """
    options = (precision, rounding, scale, power, format, output)
    return _dispatch("logsumexp", x, axis, out, options)


FUNCTIONS = {"softmax": softmax, "log_softmax": log_softmax, "logsumexp": logsumexp}
RULES = rules_by_operation(softmax)
_Options = tuple[Any, Sequence[str] | str | None, float, bool, str | None, str | None]
"""Precision, rounding, scale, power, format and output, as they were given."""


def _dispatch(operation: Operation, x: Any, axis: int, out: Any, options: _Options) -> Any:
    """Repeat a call of a known form, or check it and compute it where x is."""
    if type(axis) is not int or axis != -1:
        return _along(operation, x, axis, out, options)
    kinds = type(options[2]), type(options[3])  # of scale and power
    cpu_key: Key | None = None
    if type(x) is np.ndarray and (out is None or type(out) is np.ndarray):
        form = None if out is None else (out.dtype, out.shape, out.strides)
        cpu_key = (operation, x.dtype, x.shape, form, options, kinds)
        try:
            run = _CPU_CALLS.found[cpu_key]
        except (KeyError, TypeError):  # a new form, or an option that is given as a list
            pass
        else:
            return run(x, out)
    repeat = _KNOWN.get(type(x)) or _REPEATS.of(x)
    key, found = repeat((x,), out, (operation, options, kinds))
    if found is not None:
        return found
    if has_foreign(x, out):
        return _on_foreign(operation, x, axis, out, options)
    on_gpu = is_cupy_array(x)
    if out is not None:
        all_on_gpu({"x": on_gpu, "out": is_cuda_array(out)})
    if not on_gpu:
        given = x
        problem, x = _problem_of(operation, as_array(x, "x"), out, options)
        run = prepared(problem)
        if x is given:
            _CPU_CALLS.keep(cpu_key, run)
        return run(x, out)
    refuse_misaligned("x", x)
    with context_of(x):
        problem, read = _problem_of(operation, x, out, options)
        return _cuda().softmax(problem, read, out, key if read is x else None)


def _on_foreign(operation: Operation, x: Any, axis: int, out: Any, options: _Options) -> Any:
    """Make the call on arrays of other libraries: converted without a copy, and the result back."""
    names = ("precision", "rounding", "scale", "power", "format", "output")
    given = dict(zip(names, options, strict=True))
    return call_on_foreign(
        FUNCTIONS[operation], {"x": x, "out": out}, rules=RULES[operation], axis=axis, **given
    )


def _along(operation: Operation, x: Any, axis: int, out: Any, options: _Options) -> Any:
    """Return the same over another axis than the last: views that have it last."""
    if has_foreign(x, out):
        return _on_foreign(operation, x, axis, out, options)
    x = x if is_cuda_array(x) else as_array(x, "x")
    axis = as_axis(axis, x.ndim)
    if x.shape[axis] == 0:
        raise ValueError(f"x must have at least one column, got shape {x.shape} and axis {axis}")
    turned = x.swapaxes(axis, -1) if operation != "logsumexp" else _moved_last(x, axis)
    if operation == "logsumexp" or out is None:
        found = _dispatch(operation, turned, -1, out, options)
        return found if operation == "logsumexp" else found.swapaxes(axis, -1)
    check_out(out, x.shape, type_name(out))  # before its axes are exchanged
    _dispatch(operation, turned, -1, out.swapaxes(axis, -1), options)
    return out


def _moved_last(x: Any, axis: int) -> Any:
    """Return a view of x with an axis last and the others in order: those of logsumexp."""
    return x.transpose(*(other for other in range(x.ndim) if other != axis), axis)


@cache
def _cuda() -> ModuleType:
    """Return `argand.softmax.gpu`, imported once: an import statement takes most of 1 us."""
    from argand.softmax import gpu

    return gpu


_REPEATS = Repeats(lambda: _cuda().CALLS)
_KNOWN = _REPEATS.known


def _problem_of(
    operation: Operation, x: Any, out: Any, options: _Options
) -> tuple[SoftmaxProblem, Any]:
    """Return the problem of a call, and x in the kind of element that it names."""
    precision, rounding, scale, power, format, output = options
    if precision is None:
        given = x if out is None else out
        precision = default_precision("softmax", (given,), on_gpu=is_cuda_array(x))
    row = get_precision(precision, rounding)
    if x.ndim == 0:
        raise ValueError(f"x must be real with at least 1 axis, got {x.dtype} of shape {x.shape}")
    if x.shape[-1] == 0:
        raise ValueError(f"x must have at least one column, got shape {x.shape}")
    scale = as_real(scale, "scale")
    if not 1 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
        raise ValueError(f"scale must be from 2^-60 to 2^60, got {scale}")
    x, kind = as_kind(x, format, as_flag(power, "power"), row)
    problem = SoftmaxProblem(tuple(x.shape), operation, row, kind, output_kind(row, output), scale)
    check_out(out, problem.result_shape, problem.result_type)
    return problem, x
