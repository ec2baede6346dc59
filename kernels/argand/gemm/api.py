"""Complex matrix product: the problem, and the call that a user makes.

C = alpha op(A) op(B) + beta C, batched as ``numpy.matmul``. What is to be computed (`GemmProblem`)
is kept apart from how (`GemmPlan` of the CUDA backend); the operands decide where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from argand.device import Backend, cpu, is_cuda_array
from argand.gemm import cpu as numpy_backend
from argand.gemm.families import Family, check_family, require_family
from argand.gemm.operands import OPS, Op, as_operand, native_pairs, on_gpu, oriented_shape
from argand.gemm.packed import Packed, check_packed
from argand.gemm.pairs import HALF_FORMATS, Pairs, to_pairs
from argand.precision import Precision, get_precision
from argand.runtime.checks import check_out

__all__ = [
    "OPS",
    "GemmProblem",
    "Op",
    "OperandFormat",
    "Output",
    "allowed_outputs",
    "gemm",
    "gemm_problem",
]

Output = Literal["complex64", "complex128", "complex-half"]
"""The type of a result; complex-half is `Pairs` of the format in which the operands multiply."""
OperandFormat = Literal["complex", "fp16", "bf16", "int8", "int16", "fp32", "packed"]
"""What an operand is given as: an array, `Pairs` of a format, or `Packed`."""


def allowed_outputs(precision: Precision) -> tuple[Output, ...]:
    """The types that a result may have at a precision, the default first."""
    half = precision.terms == 1 and precision.operand.name in HALF_FORMATS
    return (precision.output, "complex-half") if half else (precision.output,)


@dataclass(frozen=True)
class GemmProblem:
    """What a call computes, without its data.

    op(A) is ``batch_shape + (m, k)``, op(B) ``batch_shape + (k, n)``, C ``batch_shape + (m, n)``;
    leading axes are broadcast as in ``numpy.matmul``. ``a_format`` and ``b_format`` are what the
    caller gave; ``kernels`` is the family of a GPU's kernels that is to compute it, None whichever
    is fastest. Raises ValueError for an output or a family that the precision does not have.
    """

    batch_shape: tuple[int, ...]
    m: int
    n: int
    k: int
    op_a: Op
    op_b: Op
    alpha: complex
    beta: complex
    precision: Precision
    output: Output = "complex64"
    a_format: OperandFormat = "complex"
    b_format: OperandFormat = "complex"
    kernels: Family | None = None

    def __post_init__(self) -> None:
        check_family(self.kernels, self.precision)
        if self.output == self.precision.output:
            return
        allowed = allowed_outputs(self.precision)
        if self.output not in allowed:
            raise ValueError(
                f"output at {self.precision.name} must be one of {list(allowed)}, "
                f"got {self.output!r}"
            )

    @property
    def batch(self) -> int:
        """How many products there are."""
        return int(np.prod(self.batch_shape, dtype=np.int64))

    @property
    def flops(self) -> int:
        """8 batch m n k: four real multiplications and four additions a complex one."""
        return 8 * self.batch * self.m * self.n * self.k

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return (*self.batch_shape, self.m, self.n)


def gemm_problem(
    a_shape: tuple[int, ...],
    b_shape: tuple[int, ...],
    c_shape: tuple[int, ...] | None = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: Op = "N",
    op_b: Op = "N",
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
    output: Output | None = None,
    a_format: OperandFormat = "complex",
    b_format: OperandFormat = "complex",
    kernels: Family | None = None,
) -> GemmProblem:
    """The problem that a call of these shapes poses; output None is the precision's own.

    Raises ValueError where the inner dimensions differ, the leading axes do not broadcast, C does
    not have the result's shape, beta is not 0 and there is no C, or the precision does not have
    this output or these kernels.
    """
    m, k = oriented_shape(a_shape, op_a, name="a", op_name="op_a")
    k_b, n = oriented_shape(b_shape, op_b, name="b", op_name="op_b")
    if k != k_b:
        raise ValueError(
            f"inner dimensions differ: op(a) is {m} x {k} and op(b) is {k_b} x {n} "
            f"(a {a_shape} {op_a}, b {b_shape} {op_b})"
        )
    try:
        batch_shape = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of a {a_shape[:-2]} and b {b_shape[:-2]} do not broadcast"
        ) from None
    row = get_precision(precision, rounding)
    problem = GemmProblem(
        batch_shape, m, n, k, op_a, op_b, complex(alpha), complex(beta), row,
        row.output if output is None else output, a_format, b_format, kernels,
    )  # fmt: skip
    if beta != 0 and c_shape is None:
        raise ValueError(f"beta is {beta}, so c must be given")
    if beta != 0 and c_shape != problem.shape:
        raise ValueError(f"c must have shape {problem.shape}, got {c_shape}")
    return problem


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: complex = 1,
    beta: complex = 0,
    op_a: Op = "N",
    op_b: Op = "N",
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
    output: Output | None = None,
    out: Any = None,
    kernels: Family | None = None,
) -> Any:
    """alpha op(a) op(b) + beta c, at a precision.

    Args:
        a, b: ``(..., m, k)`` and ``(..., k, n)`` after their op; NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU. Any strides; leading axes broadcast as in numpy.matmul.
            Either may be `Pairs` (complex-half, integers), a NumPy structured array of r and i, or
            a `Packed` of its side, precision and rounding, which holds its op already.
        c: ``(..., m, n)``, an array or `Pairs`; not read where beta is 0.
        alpha, beta: complex scalars.
        op_a, op_b: ``N`` as it is, ``T`` transposed, ``C`` conjugated and transposed.
        precision: a name of ``PRECISIONS`` or a row of it.
        rounding: how the terms of tf32 and 3xtf32 are rounded: one name for all, or one for each.
        output: the type of the result; at fp16 and bf16 also ``complex-half``, the fp32 sums
            rounded once to nearest, ties to even (what is too large becomes an infinity).
        out: where the result goes; it may be c. Its type must be the output's.
        kernels: the family of kernels that is to compute it on a GPU: ``wgmma`` (sm_90a),
            ``mma.sync`` (sm_80 and newer) or, at fp64 and fp32, ``cublas``; None is whichever is
            fastest. What is packed for wgmma can only be multiplied there (`argand.pack`).

    Returns:
        ``(..., m, n)``, complex128 at fp64 and complex64 otherwise; `Pairs` of the precision's
        format for complex-half.

    Raises:
        ValueError: shapes that do not fit, an unknown precision, op, rounding or output, a wrong
            ``out``, an operand packed for another call, kernels that the precision does not have.
        DeviceError: kernels that the device does not have.
        TypeError: some operands on a GPU and others not.
    """
    key = None
    if _on_cuda(a):
        calls = _cuda_calls()
        options = (alpha, beta, op_a, op_b, precision, rounding, output, kernels)
        key = calls.key((a, b, c, out), options)
        found = None if key is None else calls.repeat(key, (a, b, c), out)
        if found is not None:
            return found
    given = (a, b, c)
    row = get_precision(precision, rounding)
    a, b, c = (_taken(x, name) for name, x in (("a", a), ("b", b), ("c", c)))
    backend = _backend_of([x for x in (a, b, c, out) if x is not None])
    for name, x, op in (("a", a, op_a), ("b", b, op_b)):
        if isinstance(x, Packed):
            check_packed(x, name, op, row)
    problem = gemm_problem(
        a.shape, b.shape, None if c is None else c.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision=row, output=output,
        a_format=_format(a), b_format=_format(b), kernels=kernels,
    )  # fmt: skip
    if backend == "cpu":
        require_family(kernels, cpu())
    half = row.operand.name if problem.output == "complex-half" else None
    check_out(out, problem.shape, f"Pairs of {half}" if half else problem.output)
    a, b = (x.backend_data if isinstance(x, Packed) else native_pairs(row, x, backend)
            for x in (a, b))  # fmt: skip
    if isinstance(c, Pairs):
        c = c.to_complex64() if beta != 0 else None
    if backend == "cuda":
        from argand.gemm import backend as cuda_backend

        changed = [x is not y for x, y in zip(given, (a, b, c), strict=True)]
        packed = [isinstance(x, Packed) for x in given]
        same = all(p or not moved for p, moved in zip(packed, changed, strict=True))
        return cuda_backend.gemm(problem, a, b, c, out, key if same else None)
    if half is None:
        return numpy_backend.gemm(problem, a, b, c, out)
    found = to_pairs(numpy_backend.gemm(problem, a, b, c, None), half)
    if out is None:
        return found
    out.assign(found)
    return out


def _taken(x: Any, name: str) -> Any:
    """An argument as an array, `Pairs`, or for a and b `Packed`; None as it is."""
    if not isinstance(x, Packed):
        return None if x is None else as_operand(x)
    if name == "c":
        raise ValueError("c must be an array or Pairs, got a packed operand")
    return x


def _format(x: Any) -> OperandFormat:
    if isinstance(x, Packed):
        return "packed"
    # Pairs allow no other formats than those of PAIR_FORMATS, which OperandFormat lists.
    return x.format if isinstance(x, Pairs) else "complex"  # type: ignore[return-value]


def _backend_of(arguments: Sequence[Any]) -> Backend:
    """Where all of them live. Raises TypeError where they do not live together."""
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


@cache
def _cuda_calls() -> Any:
    """The call cache, imported once: the statement itself takes a good part of a microsecond."""
    from argand.gemm.calls import CALLS

    return CALLS


def _on_cuda(x: Any) -> bool:
    if is_cuda_array(x):
        return True
    if isinstance(x, Packed):
        return x.device.backend == "cuda"
    return isinstance(x, Pairs) and is_cuda_array(x.array)
