"""`solve`, the public solver of dense complex systems. The operands decide where it computes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from argand.checks import all_on_gpu, as_flag
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.rules import adapted_system
from argand.gemm.operands import as_operand, on_gpu
from argand.gemm.pack.packed import Packed
from argand.gemm.pairs import Pairs
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls
from argand.solve.cpu import CpuLibrary, WholeFactors
from argand.solve.cpu_calls import Run, prepared
from argand.solve.library import Factors, Library
from argand.solve.lu import Factorization
from argand.solve.problem import SolveProblem, solve_problem
from argand.solve.refine import Solution, refined
from argand.solve.scaling import in_type, scaled_system, times_power

_CPU_CALLS: NumpyCalls[Run] = NumpyCalls()


@overload
def solve(
    a: Any, b: Any, *, precision: str | None = ..., block: int | None = ...,
    panel: int | None = ..., details: Literal[False] = ...,
) -> Any: ...  # fmt: skip
@overload
def solve(
    a: Any, b: Any, *, precision: str | None = ..., block: int | None = ...,
    panel: int | None = ..., details: Literal[True],
) -> Solution: ...  # fmt: skip
@_CPU_CALLS.of_two()
def solve(
    cpu_key: Key | None,
    a: Any,
    b: Any,
    *,
    precision: str | None = None,
    block: int | None = None,
    panel: int | None = None,
    details: bool = False,
) -> Any:
    """Solve A x = b to the backward error of LAPACK's zgesv, or of cgesv for complex64.

    A is factored as L U with partial pivoting; the updates of the matrix, most of the work, are
    products at ``precision``, and x is refined in fp64. A matrix that the library factors whole
    gives gesv's x, refined where its backward error is not accepted; on a CPU that is computed
    without ``details`` only where the factors have grown (docs/kernels/solve.md).

    Args:
        a: (n, n), finite; NumPy arrays are solved on the CPU, CuPy arrays on their GPU. Real and
            integer arrays count as complex ones.
        b: (n,) or (n, r), finite, on the same device.
        precision: that of the products: a name of ``PRECISIONS`` or a number of moduli as
            ``15xint8``, as in `argand.gemm`. By default fp64 on the CPU. On a GPU the library
            factors up to 8000 rows of complex128 whole, at fp64, and 7200 of complex64 at fp32, or
            at fp64 where the backward error is not accepted then; beyond that, or where ``panel``
            or ``block`` is given, exact products: for complex128 12 moduli, and where refinement
            does not reach the backward error with them, 15, which are no less accurate than fp64;
            for complex64 7. The factors have the type of such products: at fp32 and below they are
            complex64, which takes a well-conditioned matrix, as do fewer moduli.
        block: smallest depth of products at ``precision``; shallower ones are fp64, or fp32 where
            the factors are complex64. By default n at fp64 and fp32, else 256 on the CPU and 512 on
            a GPU.
        panel: columns that LAPACK or cuSOLVER factors at a time; by default ``block``.
        details: return a `Solution` with x, its backward error, the steps of refinement and the
            precision of the products that led to it. The error is measured, whatever the growth.

    Returns:
        x with b's shape, complex128 where an operand needs it, else complex64.

    Memory of a GPU besides the operands, at most: the factors, and the planes of a product of half
    the matrix by half the matrix, three quarters of them or 256 MiB. An operand that is copied
    (real, with gaps between its elements, with rows further apart than its type's range allows to
    divide, or with a norm near the limits of the type) comes on top.

    Raises:
        ValueError: shapes that do not fit, NaN or infinity, an unknown precision, a block or panel
            below 1.
        TypeError: operands that are not numbers, or only one of them on a GPU.
        DeviceError: the device does not have the kernels.
        numpy.linalg.LinAlgError: a column without a pivot, a backward error that stays above
            4 sqrt(n) unit roundoffs after 5 steps of refinement, or an x beyond its type's range.

    Example:
        >>> argand.solve(np.array([[2, 0], [0, 1j]]), np.array([[2], [1]]))
        array([[1.+0.j],
               [0.-1.j]])
    """
    if has_foreign(a, b):
        return call_on_foreign(
            solve, {"a": a, "b": b}, adapted=adapted_system("a"), precision=precision, block=block,
            panel=panel, details=details,
        )  # fmt: skip
    details = as_flag(details, "details")
    left, right = _array(a, "a"), _array(b, "b")
    gpu = all_on_gpu({"a": on_gpu(left), "b": on_gpu(right)})
    problem = solve_problem(
        (left.shape, left.dtype), (right.shape, right.dtype), "cuda" if gpu else "cpu",
        precision=precision, block=block, panel=panel,
    )  # fmt: skip
    library, on_device = _library(left, right)
    if isinstance(library, CpuLibrary):
        run = prepared(problem, right, partial(_solved, problem, library), details=details)
        if left is a and right is b:
            _CPU_CALLS.keep(cpu_key, run)
        return run(left, right)
    with on_device:
        found = _solved_on_gpu(problem, library, left, right)
    return found if details else found.x


def _solved_on_gpu(problem: SolveProblem, library: Library, a: Any, b: Any) -> Solution:
    """Return gesv's solution on the current GPU where that is accepted, else `_solved`'s."""
    if not ((problem.is_zgesv or problem.is_cgesv) and problem.n and problem.columns):
        return _solved(problem, library, a, b)
    from argand.solve import gpu_calls

    found = gpu_calls.solved(problem, a, b)
    if found is None and problem.is_cgesv:
        problem = problem.fallen_back()
        found = gpu_calls.solved(problem, a, b)
    return _solved(problem, library, a, b) if found is None else found


def _array(x: Any, name: str) -> Any:
    if isinstance(x, Packed):
        raise ValueError(f"{name} must be an array or Pairs, got a packed operand")
    x = as_operand(x, name)
    return x.to_complex64() if isinstance(x, Pairs) else x


def _library(a: Any, b: Any) -> tuple[Library, AbstractContextManager[Any]]:
    """Return the library of the arrays' backend and a context in which their device is current."""
    if not on_gpu(a):
        return CpuLibrary(), nullcontext()
    from argand.runtime.calls.layout import device_of
    from argand.solve.gpu import GpuLibrary

    return GpuLibrary(), device_of(a, b)


def _solved(problem: SolveProblem, library: Library, a: Any, b: Any) -> Solution:
    arrays, working = library.arrays, problem.working
    shape, dtype = b.shape, problem.dtype
    if problem.n == 0 or problem.columns == 0:
        return Solution(arrays.empty(shape, dtype), 0.0, 0, problem.precision)
    a, b = a.astype(dtype, copy=False), b.reshape(problem.n, -1).astype(dtype, copy=False)
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        a = arrays.ascontiguousarray(a)  # once, not in every residual
    a, b, norm, exponent = scaled_system(a, b, working, arrays)
    found = _factored_and_refined(problem, a, b, norm, library)
    with np.errstate(over="ignore"):
        x = found.x if exponent == 0 else times_power(found.x, exponent)
    return found._replace(x=in_type(x, dtype, arrays).reshape(shape))


def _factored_and_refined(
    problem: SolveProblem, a: Any, b: Any, norm: float, library: Library
) -> Solution:
    def at(problem: SolveProblem, *, converged: bool = False) -> Solution:
        factors: Factors
        if isinstance(library, CpuLibrary) and problem.is_whole:
            factors = WholeFactors.of(a, problem.working, problem.precision)
        else:
            lu = library.arrays.array(a, problem.working, order="C")
            factors = Factorization(
                lu, library, precision=problem.precision, block=problem.block, panel=problem.panel
            )
        return refined(
            a, b, factors, norm=norm, unit_roundoff=problem.unit_roundoff, library=library,
            converged=converged,
        )  # fmt: skip

    if problem.fallback is None:
        return at(problem)
    try:
        # These products are coarser than zgesv's, so all of their error is to be refined away.
        return at(problem, converged=True)
    except np.linalg.LinAlgError:
        pass  # here nothing holds the first factors any more
    return at(problem.fallen_back())
