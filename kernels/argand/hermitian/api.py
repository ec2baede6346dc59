"""`solve_hermitian`, the public solver of many small Hermitian systems, by Cholesky."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from argand.checks import all_on_gpu, as_array, check_out, refuse_misaligned
from argand.device import is_cuda_array, is_cupy_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.frameworks.rules import adapted_system
from argand.hermitian import cpu
from argand.hermitian.plan import LARGEST_N
from argand.runtime.complex_types import solution_type
from argand.runtime.cpu.numpy_calls import Key, NumpyCalls

_CPU_CALLS: NumpyCalls[cpu.Solver] = NumpyCalls()


@_CPU_CALLS.of_two("out", "info")
def solve_hermitian(
    cpu_key: Key | None, r: Any, b: Any, *, out: Any = None, info: Any = None
) -> Any:
    """Solve R x = b for each of many Hermitian positive definite matrices, by Cholesky.

    All is computed in the result's type. Only the lower triangles of R are read; the imaginary
    parts of their diagonals must be finite, and do not count. x solves (R + E) x = b with a norm of
    E that is bounded (docs/kernels/hermitian.md).

    Args:
        r: ``(..., n, n)``, n up to 128, of any strides; NumPy arrays are solved on the CPU, CuPy
            arrays on their GPU, in one kernel.
        b: ``(n,)`` or ``(..., n, k)``, on the same device. Leading axes broadcast against r's.
        out: where x goes, of its shape and type. It may overlap r and b.
        info: array of int32, one for each matrix: 0 where it was solved, else the row, counted
            from 1, in which there is no positive pivot.

    Returns:
        x, ``(..., n)`` where b is ``(n,)``, else ``(..., n, k)``: complex128 where an operand needs
        it, else complex64. What is not finite in b leaves no finite x. Where a matrix is not
        positive definite or not finite, all of its x is NaN, on a GPU always, because to raise the
        host would have to wait for it, on the CPU where ``info`` is given.

    Raises:
        ValueError: shapes that do not fit, n above 128, a wrong out or info.
        TypeError: operands that are not numbers or do not fit complex128, or that are only partly
            on a GPU.
        numpy.linalg.LinAlgError: on the CPU without ``info``, a matrix that is not positive
            definite or not finite, with its index and the row of the pivot.

    Example:
        >>> argand.solve_hermitian(np.array([[[2, 1j], [-1j, 2]]]), np.array([[[3], [3]]]))
        array([[[2.-1.j],
                [2.+1.j]]])
    """
    if is_cupy_array(r):
        key, found = _cuda().CALLS.repeat((r, b, info), out, ())
        if found is not None:
            return found
    if has_foreign(r, b, out, info):
        arrays = {"r": r, "b": b, "out": out, "info": info}
        return call_on_foreign(solve_hermitian, arrays, adapted=adapted_system("r"))
    given = {"r": r, "b": b, "out": out, "info": info}
    on_gpu = all_on_gpu({name: is_cuda_array(x) for name, x in given.items() if x is not None})
    if not on_gpu:
        r, b = as_array(r, "r"), as_array(b, "b")
    dtype = solution_type("r", r.dtype, b.dtype)
    leading = _leading(r, b)
    shape = (*leading, *b.shape[-1 if b.ndim == 1 else -2 :])
    check_out(out, shape, dtype)
    _check_info(info, leading)
    if on_gpu:
        for name, x in (("r", r), ("b", b), ("info", info)):
            refuse_misaligned(name, x)
        return _cuda().solve_hermitian(r, b, dtype, shape, out, info, key)
    run = cpu.prepared(r, b, dtype, leading)
    _CPU_CALLS.keep(cpu_key, run)
    return run(r, b, out, info)


def _check_info(info: Any, leading: tuple[int, ...]) -> None:
    if info is not None and not (isinstance(info, np.ndarray) or is_cuda_array(info)):
        raise TypeError(f"info must be an array of int32, got {type(info).__name__}")
    if info is not None and (
        info.shape != leading or info.dtype != np.int32 or not info.flags.c_contiguous
    ):
        raise ValueError(
            f"info must be a contiguous array of int32 of shape {leading}, got {info.shape} of "
            f"{info.dtype}"
        )


def _leading(r: Any, b: Any) -> tuple[int, ...]:
    if r.ndim < 2 or r.shape[-1] != r.shape[-2]:
        raise ValueError(f"r must have shape (..., n, n), got {r.shape}")
    n = r.shape[-1]
    if n > LARGEST_N:
        raise ValueError(f"r must have at most {LARGEST_N} rows, got {n}; argand.solve takes more")
    if b.ndim == 0 or b.shape[-1 if b.ndim == 1 else -2] != n:
        raise ValueError(f"b must have shape ({n},) or (..., {n}, k), got {b.shape}")
    try:
        return np.broadcast_shapes(r.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading axes of r and b must broadcast, got {r.shape} and {b.shape}"
        ) from None


@cache
def _cuda() -> ModuleType:
    """Return `hermitian.gpu`, imported once: an import statement takes most of a microsecond."""
    from argand.hermitian import gpu

    return gpu
