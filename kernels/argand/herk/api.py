"""`herk`, the public Hermitian rank-k product. The operand decides where it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import all_on_gpu, check_out
from argand.defaults import default_precision
from argand.device import cpu, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.gemm.families import Family, require_family
from argand.gemm.modular.exact import exact_moduli
from argand.gemm.modular.moduli import EXACT
from argand.gemm.operands import Op, as_operand, on_gpu
from argand.gemm.pack.packed import Packed
from argand.gemm.pairs import Pairs
from argand.herk import cpu as numpy_backend
from argand.herk.problem import Form, herk_problem
from argand.herk.rules import adapted
from argand.precision import Precision, get_precision
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_CPU_CALLS: NumpyCalls[numpy_backend.Run] = NumpyCalls()


@_CPU_CALLS.of_one("c", "out")
def herk(
    cpu_key: Key | None,
    a: Any,
    c: Any = None,
    *,
    alpha: float = 1,
    beta: float = 0,
    op: Op = "N",
    precision: str | Precision | None = None,
    rounding: Sequence[str] | str | None = None,
    form: Form = "full",
    out: Any = None,
    kernels: Family | None = None,
) -> Any:
    """Return alpha op(a) op(a)^H + beta c, of which only the lower triangle is computed.

    The result is Hermitian to the bit and its diagonal has an imaginary part of exactly zero.

    Args:
        a: ``(..., n, k)`` after its op; a NumPy array is computed on the CPU, a CuPy array on its
            GPU. Any strides. Also `Pairs`, or a NumPy structured array of r and i.
        c: an array of the result's shape; only its lower triangle is read, and nothing where beta
            is 0. The imaginary part of its diagonal must be finite, and does not count.
        alpha, beta: real scalars, as in `argand.gemm`; where alpha is 0, a is not read.
        op: ``N`` as it is, ``T`` transposed, ``C`` conjugated and transposed.
        precision: a name of ``PRECISIONS``, a row of it or a dtype, by default as in `argand.gemm`;
            or ``6xint8`` to ``17xint8``, as there; for Pairs of int8, int16 and fp16 also
            ``exact``: sums of integers that are rounded once, to the result's type (int8 up to k =
            65535 in s32 on Hopper).
        rounding: how the terms of tf32 and 3xtf32 are rounded: one name for all, or one for each.
        form: ``full``, or ``triangle``: the lower triangle row by row, element (i, j) at
            i (i + 1) / 2 + j, as in BLAS's packed storage by rows.
        out: where the result goes; it may be c. Its type must be the result's; at exact complex64
            or complex128.
        kernels: the family of kernels that is to compute it on a GPU, as in `argand.gemm`.

    Returns:
        ``(..., n, n)``, or ``(..., n (n + 1) / 2)`` of a triangle; complex128 at fp64 and complex64
        otherwise; at a number of moduli the operand's type, at exact the type of ``out``.

    Raises:
        ValueError: a shape, op, form, precision, rounding, scalar, c or out that does not fit; at
            exact an operand of another kind or a k too long.
        DeviceError: kernels that the device does not have.
        TypeError: some of a, c and out on a GPU and others not.

    Example:
        >>> voltages = np.array([[1, 1j], [2, 0]], np.complex64)
        >>> argand.herk(voltages)
        array([[2.+0.j, 2.-0.j],
               [2.+0.j, 4.+0.j]], dtype=complex64)
    """
    options: Key = (alpha, beta, op, precision, rounding, form, kernels)
    kept, arguments = None, (a, c)
    if is_cupy_array(a.array if isinstance(a, Pairs) else a):
        kept, found = _cuda().CALLS.repeat(arguments, out, options)
        if found is not None:
            return found
    if has_foreign(a, c, out):
        return call_on_foreign(
            herk, {"a": a, "c": c, "out": out}, adapted=adapted, pairs=Pairs,
            alpha=alpha, beta=beta, op=op, precision=precision, rounding=rounding, form=form,
            kernels=kernels,
        )  # fmt: skip
    given, (a, c) = a, _checked_operands(a, c, out)
    if isinstance(op, str) and op == "T" and a.ndim >= 2:  # A^T is a view of A
        a, op = _transposed(a), "N"
    if precision is None:
        arrays = (a, c) if out is None else (out,)
        precision = default_precision("product", arrays, on_gpu=on_gpu(a))
    row, dtype = _computed_at(precision, rounding, a, out)
    problem = herk_problem(
        a.shape, op=op, alpha=alpha, beta=beta, precision=row, dtype=dtype, form=form,
        kernels=kernels, c_shape=None if c is None else tuple(c.shape),
    )  # fmt: skip
    if row is None:
        exact_moduli(a, a, problem.k)  # raises ValueError for what cannot be exact
    check_out(out, problem.shape, problem.dtype)
    if beta == 0:
        c = None
    if not on_gpu(a):
        require_family(kernels, cpu())
        run = numpy_backend.prepared(problem, a, c)
        if out is not None:
            run = numpy_backend.into(run)
        if a is given:
            _CPU_CALLS.keep(cpu_key, run)
        return run(a, c) if out is None else run(a, c, out=out)
    return _cuda().herk(problem, a, c, out, kept, arguments)


def _checked_operands(a: Any, c: Any, out: Any) -> tuple[Any, Any]:
    """Return a and c as arrays or `Pairs`, c perhaps None. Raises TypeError on several devices."""
    if isinstance(a, Packed):
        raise ValueError("a must be an array or Pairs, got a packed operand")
    a = as_operand(a, "a")
    c = None if c is None else as_operand(c, "c")
    if isinstance(c, Pairs):
        raise TypeError(f"c must be an array, got {c.type_name}: give its to_complex64()")
    given = {"a": a, "c": c, "out": out}
    all_on_gpu({name: on_gpu(x) for name, x in given.items() if x is not None})
    return a, c


def _transposed(a: Any) -> Any:
    if isinstance(a, Pairs):
        return Pairs(a.array.swapaxes(-2, -3), a.format)
    return a.swapaxes(-1, -2)


def _computed_at(
    precision: str | Precision, rounding: Sequence[str] | str | None, a: Any, out: Any
) -> tuple[Precision | None, str]:
    """Return the row of a precision, None at `EXACT`, and the result's type of these arrays.

    Raises ValueError for an unknown precision or rounding.
    """
    narrow = np.dtype(np.complex64)
    own = np.result_type(narrow if isinstance(a, Pairs) else a.dtype, narrow)
    if isinstance(precision, str) and precision == EXACT:
        if rounding is not None:
            raise ValueError(f"precision {EXACT} takes no rounding, got {rounding!r}")
        return None, str(np.result_type(own, getattr(out, "dtype", own)))
    row = get_precision(precision, rounding, exact=True)
    return row, str(own) if row.moduli else row.output


@cache
def _cuda() -> ModuleType:
    """Return `argand.herk.gpu`, imported once: an import statement takes most of a microsecond."""
    from argand.herk import gpu

    return gpu
