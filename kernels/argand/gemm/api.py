"""`gemm`, the public complex matrix product. The operands decide where it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from argand.checks import as_flag, check_out
from argand.defaults import default_precision
from argand.device import Backend, cpu, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.repeats import Repeats
from argand.gemm import cpu as numpy_backend
from argand.gemm.cpu_calls import Run, prepared
from argand.gemm.families import Family, require_family
from argand.gemm.modular.api import check_modular, modular_gemm
from argand.gemm.modular.moduli import EXACT, MODULAR_PRECISIONS
from argand.gemm.operands import Op, as_operand, native_pairs, on_gpu
from argand.gemm.pack.packed import Packed, check_packed
from argand.gemm.pairs import Pairs, to_pairs
from argand.gemm.problem import GemmProblem, OperandKind, Output, gemm_problem, result_type
from argand.gemm.rules import RULES
from argand.gemm.squares import squared
from argand.precision import Precision, get_precision, precision_name
from argand.runtime.calls.array_context import context_of
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_CPU_CALLS: NumpyCalls[Run] = NumpyCalls()


@_CPU_CALLS.of_two("c", "out")
def gemm(
    cpu_key: Key | None,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: Op = "N",
    op_b: Op = "N",
    precision: str | Precision | None = None,
    tolerance: float | None = None,
    check: bool = False,
    rounding: Sequence[str] | str | None = None,
    output: Output | None = None,
    out: Any = None,
    kernels: Family | None = None,
) -> Any:
    """Compute alpha op(a) op(b) + beta c at a precision or within a proven tolerance.

    Args:
        a, b: ``(..., m, k)`` and ``(..., k, n)`` after their op; NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU, and torch's tensors where they are, into a tensor. Any
            strides; leading axes broadcast as in numpy.matmul.
            Either may be `Pairs` (complex-half, integers), a NumPy structured array of r and i, or
            a `Packed` of its side, precision and rounding, which holds its op already.
        c: ``(..., m, n)``, an array or `Pairs`; not read where beta is 0.
        alpha, beta: complex scalars, within the range of the result's type, to which they are
            rounded: one below its smallest number multiplies by 0. Where alpha is 0, a and b are
            not read: NaN in them leaves no trace in the result, which is beta c. At a beta of 1 a
            CPU adds c as it is; a GPU, and any number of moduli, multiplies it by 1 + 0i, which may
            make NaN of infinities.
        op_a, op_b: ``N`` as it is, ``T`` transposed, ``C`` conjugated and transposed.
        precision: a name of ``PRECISIONS``, a row of it or a dtype; or ``6xint8`` to ``17xint8``,
            which multiply integers exactly modulo that many numbers: operands and result are
            rounded once each (docs/kernels/modular.md); or, for Pairs of int8, int16 and fp16,
            ``exact``: as few moduli as leave operands unrounded. By default that of a packed
            operand; else fp64 where ``out`` has it, or an operand where there is no ``out``; else
            fp32 on the CPU and 3xtf32 on a GPU, whose errors are smaller than those of cuBLAS's
            fp32.
        tolerance: takes, in place of a precision, the fewest moduli whose bound proves that every
            element of op(a) op(b) is within tolerance |a_i| |b_j|, 2-norms of a row and a column.
        check: at a number of moduli or a tolerance: prove the product, before it is rounded, by
            A'(B' x) = C' x modulo a prime; a wrong element escapes with a probability below 2^-30.
            On a GPU the call waits for it.
        rounding: how the terms of tf32 and 3xtf32 are rounded: one name for all, or one for each.
        output: the type of the result; at fp16 and bf16 also ``complex-half``, the fp32 sums
            rounded once to nearest, ties to even (what is too large becomes an infinity); at any
            precision ``power``: |c_ij|^2 of the result, real. Kernels of the family wgmma store it
            directly where they are asked for; otherwise a pass over the result computes it.
        out: where the result goes; it may be c. Its type must be the output's.
        kernels: the family of kernels that is to compute it on a GPU: ``wgmma`` (sm_90a),
            ``mma.sync`` (sm_80 and newer) or, at fp64 and fp32, ``cublas``; None is whichever is
            fastest, also those of tf32 and 3xtf32 at fp16 and 3xfp16 (docs/kernels/numerics.md).
            What is packed for wgmma can only be multiplied there (`argand.pack`).

    Returns:
        ``(..., m, n)``, complex128 at fp64 and complex64 otherwise; at a number of moduli the type
        of a and b, whatever c's is; at exact the type of ``out``; `Pairs` of the precision's format
        for complex-half, float64 or float32 for power.

    Raises:
        ValueError: shapes that do not fit, an unknown precision, op, rounding or output, a wrong
            ``out``, an operand packed for another call, kernels that the precision does not have,
            a tolerance that cannot be proven.
        DeviceError: kernels that the device does not have.
        WrongProductError: ``check`` found a wrong product.
        TypeError: some operands on a GPU and others not.

    Example:
        >>> a = np.array([[1, 1j], [0, 2]])
        >>> argand.gemm(a, a)
        array([[1.+0.j, 0.+3.j],
               [0.+0.j, 4.+0.j]])
        >>> argand.gemm(a, a, op_b="C", precision="tf32").dtype
        dtype('complex64')
    """
    if type(precision) is not str and precision is not None:
        precision = _precision_name(precision)
    # The call cache, which repeats a call of a form seen before (runtime/calls/call_cache.py).
    repeat = _KNOWN.get(type(a)) or _REPEATS.of(a)
    gpu_key, result = repeat(
        (a, b, c), out,
        (alpha, beta, op_a, op_b, precision, tolerance, type(tolerance), check, type(check),
         rounding, output, kernels),
    )  # fmt: skip
    if result is not None:
        return result
    for name, x in (("a", a), ("b", b)):
        if x is None:
            raise TypeError(f"{name} must be an array, got None")
    options = _Options(
        alpha, beta, op_a, op_b, precision, tolerance, check, rounding, output, kernels
    )
    if has_foreign(a, b, c, out):
        given = {"a": a, "b": b, "c": c, "out": out}
        return call_on_foreign(gemm, given, rules=RULES, pairs=Pairs, **options._asdict())
    if precision is None and tolerance is None:
        precision = _default_precision(a, b, c, out)
        options = options._replace(precision=precision)
    if isinstance(output, str) and output == "power" and kernels != "wgmma":
        with context_of(*map(_array_of, (a, b, c, out))):
            return squared(gemm(a, b, c, **options._replace(output=None)._asdict()), out)
    if tolerance is not None or precision in MODULAR_PRECISIONS or precision == EXACT:
        return _exact_product(a, b, c, out, gpu_key, options)
    return _rounded_product(a, b, c, out, (gpu_key, cpu_key), options)


class _Options(NamedTuple):
    """The arguments of a call of `gemm` without its arrays."""

    alpha: complex
    beta: complex
    op_a: Op
    op_b: Op
    precision: str | Precision | None
    tolerance: float | None
    check: bool
    rounding: Sequence[str] | str | None
    output: Output | None
    kernels: Family | None


def _exact_product(a: Any, b: Any, c: Any, out: Any, key: Key | None, options: _Options) -> Any:
    """Compute a product by exact integers, of a number of moduli or within a tolerance."""
    precision, tolerance = options.precision, options.tolerance
    check_modular(precision, tolerance, options.rounding, options.output)
    return modular_gemm(
        a, b, c, alpha=options.alpha, beta=options.beta, op_a=options.op_a, op_b=options.op_b,
        precision=None if precision is None else str(precision), tolerance=tolerance,
        check=as_flag(options.check, "check"), out=out, kernels=options.kernels, key=key,
    )  # fmt: skip


def _rounded_product(
    a: Any, b: Any, c: Any, out: Any, keys: tuple[Key | None, Key | None], options: _Options
) -> Any:
    """Check a product of rounded operands and compute it on the backend that holds them.

    ``keys`` are those under which the call caches of GPU and CPU keep the call.
    """
    if as_flag(options.check, "check"):
        raise ValueError(
            f"check is for exact products, such as at precision 7xint8 or a tolerance, "
            f"got precision {options.precision!r}"
        )
    given = (a, b, c)
    row = get_precision(options.precision, options.rounding, exact=True)
    a, b, c = (_checked_operand(x, name) for name, x in (("a", a), ("b", b), ("c", c)))
    backend = _backend_of([x for x in (a, b, c, out) if x is not None])
    for name, x, op in (("a", a, options.op_a), ("b", b, options.op_b)):
        if isinstance(x, Packed):
            check_packed(x, name, op, row)
    problem = gemm_problem(
        a.shape, b.shape, None if c is None else c.shape,
        alpha=options.alpha, beta=options.beta, op_a=options.op_a, op_b=options.op_b, precision=row,
        output=options.output, a_format=_operand_kind(a), b_format=_operand_kind(b),
        kernels=options.kernels,
    )  # fmt: skip
    if backend == "cpu":
        require_family(options.kernels, cpu())
    check_out(out, problem.shape, result_type(problem))
    return _compute(problem, given, (a, b, c), out, backend, *keys)


def _compute(
    problem: GemmProblem, given: tuple[Any, ...], operands: tuple[Any, ...], out: Any,
    backend: Backend, key: Key | None, cpu_key: Key | None,
) -> Any:  # fmt: skip
    """Solve a checked problem, and keep the call where its operands are used as they were given.

    ``operands`` are those ``given``, as arrays, `Pairs` or `Packed`.
    """
    row = problem.precision
    a, b = (x.backend_data if isinstance(x, Packed) else native_pairs(row, x, backend)
            for x in operands[:2])  # fmt: skip
    c = operands[2]
    if isinstance(c, Pairs):
        c = c.to_complex64() if problem.beta != 0 else None
    if backend == "cuda":
        from argand.gemm import gpu as cuda_gemm

        changed = [x is not y for x, y in zip(given, (a, b, c), strict=True)]
        packed = [isinstance(x, Packed) for x in given]
        same = all(p or not moved for p, moved in zip(packed, changed, strict=True))
        return cuda_gemm.gemm(problem, a, b, c, out, key if same else None)
    if problem.output != "complex-half":
        alone = given[2] is None and out is None
        run = prepared(problem, a, b, c, alone=alone)
        if all(x is y for x, y in zip(given, (a, b, c), strict=True)):
            _CPU_CALLS.keep(cpu_key, run)
        return run(a, b) if alone else run(a, b, c, out)
    half = to_pairs(numpy_backend.gemm(problem, a, b, c, None), row.operand.name)
    if out is None:
        return half
    out.assign(half)
    return out


def _precision_name(precision: Any) -> str | Precision:
    """Return the name of a precision that is given as a dtype or as a row of moduli."""
    if isinstance(precision, Precision) and precision.moduli:
        return precision.name
    named: str | Precision = precision_name(precision)
    return named


def _default_precision(a: Any, b: Any, c: Any, out: Any) -> str | Precision:
    """Return the precision of a call that names none: of what is packed, else of the data."""
    for x in (a, b):
        if isinstance(x, Packed):
            return x.precision.name if x.precision.moduli else x.precision
    arrays = (a, b, c) if out is None else (out,)
    return default_precision("product", arrays, on_gpu=is_cupy_array(a) or _holds_cupy(a))


def _checked_operand(x: Any, name: str) -> Any:
    """Return an argument as an array, `Pairs`, or for a and b `Packed`; None as it is."""
    if not isinstance(x, Packed):
        return None if x is None else as_operand(x, name)
    if name == "c":
        raise ValueError("c must be an array or Pairs, got a packed operand")
    return x


def _array_of(x: Any) -> Any:
    """Return the array that an argument is, or that holds it."""
    if isinstance(x, Packed):
        return getattr(x.backend_data, "memory", None)
    return x.array if isinstance(x, Pairs) else x


def _operand_kind(x: Any) -> OperandKind:
    if isinstance(x, Packed):
        return "packed"
    # Pairs allow no other formats than those of PAIR_FORMATS, which OperandKind lists.
    return x.format if isinstance(x, Pairs) else "complex"  # type: ignore[return-value]


def _backend_of(arguments: Sequence[Any]) -> Backend:
    """Return the backend of all arguments. Raises TypeError where they are on different ones."""
    found: set[Backend] = {
        x.device.backend if isinstance(x, Packed) else "cuda" if on_gpu(x) else "cpu"
        for x in arguments
    }
    if len(found) > 1:
        raise TypeError(
            "a, b, c and out must all be on the CPU (NumPy arrays, and what is packed or paired of "
            "them) or all on a GPU (CuPy arrays)"
        )
    return found.pop()


def _cuda_calls() -> Any:
    """Return the call cache, which needs CuPy."""
    from argand.gemm.gpu_calls import CALLS

    return CALLS


def _holds_cupy(x: Any) -> bool:
    """Return whether x is packed or paired of CuPy's arrays."""
    if isinstance(x, Packed):
        return x.device.backend == "cuda"
    return isinstance(x, Pairs) and is_cupy_array(x.array)


_REPEATS = Repeats(_cuda_calls, on_gpu=_holds_cupy)
_KNOWN = _REPEATS.known
