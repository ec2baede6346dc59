"""`argand.gemm` at the precisions of exact integers: what such a call takes and computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from argand.checks import all_on_gpu, as_real, check_out
from argand.device import cpu
from argand.gemm.cpu import oriented
from argand.gemm.families import Family, check_family, require_family
from argand.gemm.modular.cpu import product
from argand.gemm.modular.exact import exact_moduli
from argand.gemm.modular.moduli import (
    EXACT,
    MIN_PRECISION_MODULI,
    MODULAR_PRECISIONS,
    fewest_moduli,
    moduli,
)
from argand.gemm.modular.packed_lines import PackedLines
from argand.gemm.modular.packed_lines import pack as pack_lines
from argand.gemm.modular.problem import ModularCall
from argand.gemm.modular.reconstruction import times
from argand.gemm.operands import Op, Side, as_operand, on_gpu
from argand.gemm.pack.packed import Packed, check_packed
from argand.gemm.pairs import Pairs
from argand.gemm.problem import GemmProblem, check_scalars, gemm_problem
from argand.precision import EXACT_PRECISIONS
from argand.runtime.calls.array_context import context_of
from argand.runtime.complex_types import UNIT_ROUNDOFF

if TYPE_CHECKING:  # its module needs CuPy
    from argand.runtime.calls.call_cache import Key

Array = npt.NDArray[Any]


def check_modular(precision: object, tolerance: float | None, *others: object) -> None:
    """Raise ValueError for arguments that do not go with exact integers."""
    if tolerance is not None and precision is not None:
        raise ValueError(f"give a precision or a tolerance, got {precision!r} and {tolerance}")
    if tolerance is not None and not as_real(tolerance, "tolerance") > 0:
        raise ValueError(f"tolerance must be above 0, got {tolerance}")
    if any(x is not None for x in others):
        what = f"precision {precision}" if tolerance is None else "a tolerance"
        raise ValueError(f"{what} takes no rounding and no output, got {list(others)}")


def modular_gemm(
    a: Any,
    b: Any,
    c: Any,
    *,
    alpha: complex,
    beta: complex,
    op_a: Op,
    op_b: Op,
    precision: str | None,
    tolerance: float | None,
    check: bool,
    out: Any,
    kernels: Family | None = None,
    key: Key | None = None,
) -> Any:
    """Return alpha op(a) op(b) + beta c by an exact product of integers; see `argand.gemm`.

    The result has the operands' type: complex128 where one of them needs it, else complex64; at
    `EXACT` complex128 also where ``out`` is, which holds every sum of int8 and int16. Real and
    imaginary parts of what alpha and beta multiply are rounded after each operation, in the
    result's type. ``key`` is what the call cache of a GPU's products keeps the call under.

    Raises:
        ValueError: as `argand.gemm` does; a tolerance that no number of moduli proves; k too long
            for the moduli; operands packed for another call, and on a GPU to be checked; at `EXACT`
            operands of another kind.
        DeviceError: kernels that the device does not have.
        TypeError: some operands on a GPU and others not, or wider than complex128.
        WrongProductError: the check failed.
    """
    for name, x in (("c", c), ("out", out)):
        if isinstance(x, Packed):
            raise ValueError(f"{name} must be an array or Pairs, got a packed operand")
    given = a, b, c = (
        _any_operand(a, "a"),
        _any_operand(b, "b"),
        _any_operand(c, "c"),
    )
    left, right, addend = _array(a), _array(b), _array(c)
    named = {"a": left, "b": right, "c": addend, "out": out}
    on_a_gpu = all_on_gpu({
        name: x.device.backend == "cuda" if isinstance(x, Packed) else on_gpu(x)
        for name, x in named.items() if x is not None
    })  # fmt: skip
    problem = gemm_problem(
        left.shape, right.shape, None if addend is None else addend.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision="fp64",
    )  # fmt: skip
    dtype = _common_type(left, right)
    if precision == EXACT:
        count = exact_moduli(a, b, problem.k)
        dtype = np.result_type(dtype, getattr(out, "dtype", dtype))
    else:
        count = _moduli_count(precision, tolerance, problem.k, str(dtype))
    check_scalars(problem, str(dtype))
    row = EXACT_PRECISIONS[f"{max(count, MIN_PRECISION_MODULI)}xint8"]
    check_family(kernels, row)
    for name, x, op in (("a", a, op_a), ("b", b, op_b)):
        if isinstance(x, Packed):
            check_packed(x, name, op, row)
            _check_packed_type(x, name, dtype)
    check_out(out, problem.shape, str(dtype))
    left, right = (_as_multiplied(x, dtype) for x in (left, right))
    addend = None if addend is None or beta == 0 else _converted(addend, dtype)
    if on_a_gpu:
        call = ModularCall(problem, count, kernels, check)
        return _on_gpu(call, given, (left, right, addend), out, key)
    require_family(kernels, cpu())
    found = _on_cpu(problem, left, right, addend, count, str(dtype), check=check)
    if out is None:
        return found
    out[...] = found
    return out


def _on_gpu(
    call: ModularCall, given: tuple[Any, ...], operands: tuple[Any, ...], out: Any, key: Key | None
) -> Any:
    """Compute a product on a GPU, and keep the call where its operands are used as ``given``."""
    from argand.gemm.modular.gpu import modular_product

    a, b, c = given
    left, right, addend = operands
    if call.check and any(isinstance(x, Packed) for x in (a, b)):
        raise ValueError("check needs the operands themselves on a GPU, got a packed one")
    own = all(isinstance(x, Packed) or x is y for x, y in ((a, left), (b, right)))
    key = key if own and (addend is None or addend is c) else None
    return modular_product(call, left, right, addend, out, key, (a, b, addend))


def _moduli_count(precision: str | None, tolerance: float | None, k: int, dtype: str) -> int:
    """Return the moduli of a precision, or the fewest that a tolerance needs."""
    if precision is not None:
        return MODULAR_PRECISIONS[precision]
    return fewest_moduli(k, tolerance or 0.0, UNIT_ROUNDOFF[dtype])


def _on_cpu(
    problem: GemmProblem, left: Any, right: Any, addend: Any, count: int, dtype: str, *, check: bool
) -> Any:
    """Return alpha op(A) op(B) + beta C; where the product is zero, NaN in A and B leaves none."""
    alpha, beta = problem.alpha, problem.beta
    if alpha == 0 or not problem.k:
        return np.zeros(problem.shape, dtype) if addend is None else times(addend, beta)
    found = _products(problem, left, right, count, dtype, check=check)
    found = found if alpha == 1 else times(found, alpha)
    return found if addend is None else found + times(addend, beta)


def pack_modular(x: Any, count: int, op: Op, side: Side) -> Any:
    """Return an operand packed for ``count`` moduli, as the backend that holds it multiplies it.

    Raises ValueError where k is too long for the moduli.
    """
    x = _array(x)
    x = _converted(x, np.result_type(x.dtype, np.complex64))
    if on_gpu(x):
        from argand.gemm.modular.packing import pack

        return pack(x, op, count, side)
    return pack_lines(x, op, count, side)


def _any_operand(x: Any, name: str) -> Any:
    return x if x is None or isinstance(x, Packed) else as_operand(x, name)


def _array(x: Any) -> Any:
    return x.to_complex64() if isinstance(x, Pairs) else x


def _converted(x: Any, dtype: Any) -> Any:
    with context_of(x):
        return x.astype(dtype, copy=False)


def _as_multiplied(x: Any, dtype: Any) -> Any:
    """Return an operand in the type of the result, or what is packed of it."""
    return x.backend_data if isinstance(x, Packed) else _converted(x, dtype)


def _common_type(left: Any, right: Any) -> Any:
    """Return the complex type of two operands. Raises TypeError beyond complex128."""

    def of(x: Any) -> Any:
        # Operands packed for another precision are refused later.
        return getattr(x.backend_data, "dtype", "complex64") if isinstance(x, Packed) else x.dtype

    dtype = np.result_type(of(left), of(right), np.complex64)
    if str(dtype) not in UNIT_ROUNDOFF:
        raise TypeError(f"exact products take operands up to complex128, got {dtype}")
    return dtype


def _check_packed_type(packed: Packed, name: str, dtype: Any) -> None:
    """Raise ValueError where the result has another type than what was packed."""
    if packed.backend_data.dtype != str(dtype):
        raise ValueError(
            f"{name} was packed as {packed.backend_data.dtype} and the product is {dtype}; "
            f"pack it as {dtype}"
        )


def _products(
    problem: GemmProblem,
    a: Array | PackedLines,
    b: Array | PackedLines,
    count: int,
    dtype: str,
    *,
    check: bool,
) -> Array:
    """Return the products of a batch, one by one, as the model computes them."""
    shape = problem.batch_shape
    left = _matrices(a, problem.op_a, (*shape, problem.m, problem.k))
    right = _matrices(b, problem.op_b, (*shape, problem.k, problem.n))
    out = np.empty(problem.shape, dtype)
    for index, x, y in zip(np.ndindex(shape), left, right, strict=True):
        out[index] = product(x, y, moduli(count), dtype=dtype, check=check)
    return out


def _matrices(x: Array | PackedLines, op: Op, shape: tuple[int, ...]) -> Iterable[Any]:
    if isinstance(x, PackedLines):
        return x.over(shape[:-2])
    found = np.broadcast_to(oriented(x, op), shape)
    return (found[index] for index in np.ndindex(shape[:-2]))
