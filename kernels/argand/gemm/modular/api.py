"""`argand.gemm` at the precisions of exact integers: what such a call takes and computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from argand.device import cpu
from argand.gemm.cpu import oriented
from argand.gemm.families import Family, check_family, require_family
from argand.gemm.modular.cpu import product
from argand.gemm.modular.exact import exact_moduli
from argand.gemm.modular.moduli import EXACT, FEWEST, MODULAR_PRECISIONS, fewest_moduli, moduli
from argand.gemm.modular.reconstruction import times
from argand.gemm.operands import Op, as_operand, on_gpu
from argand.gemm.packed import Packed
from argand.gemm.pairs import Pairs
from argand.gemm.problem import GemmProblem, gemm_problem
from argand.precision import EXACT_PRECISIONS
from argand.runtime.checks import check_out

if TYPE_CHECKING:  # its module needs CuPy
    from argand.runtime.call_cache import Key

Array = npt.NDArray[Any]
_ROUNDOFF = {np.dtype(np.complex64): 2.0**-24, np.dtype(np.complex128): 2.0**-53}


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
    """alpha op(a) op(b) + beta c from the exact product of integers; arguments as of `argand.gemm`.

    The result has the operands' type: complex128 where one of them needs it, else complex64; at
    `EXACT` complex128 also where ``out`` is, which holds every sum of int8 and int16. Real and
    imaginary parts of what alpha and beta multiply are rounded after each operation, in the
    result's type. ``key`` is what the call cache of a GPU's products keeps the call under.

    Raises:
        ValueError: as `argand.gemm` does; a tolerance that no number of moduli proves; k too long
            for the moduli; packed operands; at `EXACT` operands of another kind.
        DeviceError: kernels that the device does not have.
        TypeError: some operands on a GPU and others not.
        WrongProductError: the check failed.
    """
    for name, x in (("a", a), ("b", b), ("c", c), ("out", out)):
        if isinstance(x, Packed):
            raise ValueError(
                f"{precision or 'a tolerance'} takes arrays and Pairs of them, got a packed {name}"
            )
    a, b, c = (None if x is None else as_operand(x) for x in (a, b, c))
    left, right, addend = (_array(x) for x in (a, b, c))
    given = [x for x in (left, right, addend, out) if x is not None]
    on_cards = {on_gpu(x) for x in given}
    if len(on_cards) > 1:
        raise TypeError("a, b, c and out must all be NumPy arrays or all be CuPy arrays")
    problem = gemm_problem(
        left.shape, right.shape, None if addend is None else addend.shape,
        alpha=alpha, beta=beta, op_a=op_a, op_b=op_b, precision="fp64",
    )  # fmt: skip
    dtype = np.result_type(left.dtype, right.dtype, np.complex64)
    if precision == EXACT:
        count = exact_moduli(a, b, problem.k)
        dtype = np.result_type(dtype, getattr(out, "dtype", dtype))
    elif precision is not None:
        count = MODULAR_PRECISIONS[precision]
    else:
        count = fewest_moduli(problem.k, tolerance or 0.0, _ROUNDOFF[dtype])
    check_family(kernels, EXACT_PRECISIONS[f"{max(count, FEWEST)}xint8"])
    check_out(out, problem.shape, str(dtype))
    if beta == 0:
        addend = None
    left, right = (x.astype(dtype, copy=False) for x in (left, right))
    addend = None if addend is None else addend.astype(dtype, copy=False)
    if on_cards == {True}:
        from argand.gemm.modular.gpu import modular_product

        own = left is a and right is b and (addend is None or addend is c)
        return modular_product(
            problem, left, right, addend, out, count, kernels, key if own else None, check=check
        )
    require_family(kernels, cpu())
    found = _products(problem, left, right, count, check=check)
    if alpha != 1:
        found = times(found, alpha)
    if addend is not None:
        found = found + times(addend, beta)
    if out is None:
        return found
    out[...] = found
    return out


def _array(x: Any) -> Any:
    return x.to_complex64() if isinstance(x, Pairs) else x


def _products(problem: GemmProblem, a: Array, b: Array, count: int, *, check: bool) -> Array:
    a, b = oriented(a, problem.op_a), oriented(b, problem.op_b)
    a = np.broadcast_to(a, (*problem.batch_shape, problem.m, problem.k))
    b = np.broadcast_to(b, (*problem.batch_shape, problem.k, problem.n))
    out = np.empty(problem.shape, a.dtype)
    for index in np.ndindex(problem.batch_shape):
        out[index] = product(a[index], b[index], moduli(count), check=check)
    return out
