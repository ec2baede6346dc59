"""Systems on a GPU that cuSOLVER's zgetrf factors whole: x without a residual.

As on a CPU (`argand.solve.cpu_calls`) x is taken as it is where the factors have not grown
(`argand.solve.error_bounds`). All is queued at once, and the host waits once: for the sums of
squares and for whether a column lacked a pivot. Singular systems, and those that are to be scaled,
go on to `argand.solve.api`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.runtime.kernel import BoundKernel, bound_kernel
from argand.solve.error_bounds import most_growth
from argand.solve.gpu import GpuLibrary, WholeFactors, columns_of, factor
from argand.solve.growth_plan import (
    GROWTH_ARGUMENTS,
    GROWTH_KERNEL,
    GROWTH_THREADS,
    growth_blocks,
    growth_source,
)
from argand.solve.problem import SolveProblem
from argand.solve.refine import refined
from argand.solve.scaling import norm, safe_norms


def solved(problem: SolveProblem, a: Any, b: Any) -> Any | None:
    """Return x of A x = b with b's shape; waits for the GPU.

    Where the factors have grown, x is refined if its backward error is not accepted. It is None
    where a column has no pivot, and where A, b or x is not finite or so far from 1 that the system
    may have to be scaled.

    Args:
        problem: one that is zgesv's (`SolveProblem.is_zgesv`), n and the columns at least 1.
        a, b: its operands, on the current device.

    Raises numpy.linalg.LinAlgError where the backward error stays larger than what is accepted.
    """
    n, columns, dtype = problem.n, problem.columns, np.dtype(problem.dtype)
    a = a.astype(dtype, copy=False)
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        a = cupy.ascontiguousarray(a)
    lu = _columns(a)
    found = cupy.empty(n + 2, np.int32)  # pivots, and what getrf and getrs say
    factor(lu, found)
    factors = WholeFactors(lu, found, problem.precision)
    right = b.reshape(n, columns)
    x = factors.solve(right)
    launch, blocks = _growth_launch(n, columns, str(dtype), gpu(cupy.cuda.Device().id))
    sums = cupy.empty((blocks, 4))
    launch({
        "a": a.data.ptr, "lu": lu.data.ptr, "x": x.data.ptr, "info": found[n:].data.ptr,
        "sums": sums.data.ptr,
    })  # fmt: skip
    result = _shaped(x, dtype, b.shape)
    is_usable, has_grown = _checked(problem, sums.get())
    if not is_usable:
        return None
    return _refined(problem, a, right, factors, x, b.shape) if has_grown else result


def _refined(
    problem: SolveProblem, a: Any, b: Any, factors: WholeFactors, x: Any, shape: tuple[int, ...]
) -> Any | None:
    """Return x, refined where its error is not accepted; None where the system is to be scaled."""
    least, most = safe_norms(problem.working)
    norm_of_a, norm_of_b = norm(a, cupy), norm(b, cupy)
    if not (least <= norm_of_a <= most and least <= norm_of_b <= most):
        return None
    found = refined(
        a, b, factors, norm=norm_of_a, unit_roundoff=problem.unit_roundoff, library=GpuLibrary(),
        x=x,
    )  # fmt: skip
    return _shaped(found.x, np.dtype(problem.dtype), shape)


def _shaped(x: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    return cupy.ascontiguousarray(x, dtype).reshape(shape)


def _columns(a: Any) -> Any:
    """Return a column-major copy of a contiguous matrix, in complex128."""
    wide = a.astype(np.complex128, copy=False)
    if wide.flags.c_contiguous:
        return columns_of(wide)
    return wide.copy("F") if wide is a else wide


@lru_cache(maxsize=256)
def _growth_launch(n: int, columns: int, dtype: str, device: Device) -> tuple[BoundKernel, int]:
    blocks = growth_blocks(n, device.sm_count)
    values = {"n": n, "reals_of_a": 2 * n * n, "reals_of_x": 2 * n * columns}
    launch = bound_kernel(
        growth_source(dtype), GROWTH_KERNEL, blocks, GROWTH_THREADS, GROWTH_ARGUMENTS, device,
        values,
    )  # fmt: skip
    return launch, blocks


def _checked(problem: SolveProblem, sums: Any) -> tuple[bool, bool]:
    """Return whether x is usable, and whether the factors have grown.

    ``sums`` are those of each block (`cuda/solve/growth.cuh`).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        of_a, of_u, of_x = sums[:, :3].sum(axis=0).tolist()
    least, most = (size * size for size in safe_norms(problem.dtype))
    is_usable = least <= of_a <= most and least <= of_x <= most and sums[0, 3] == 0  # nor NaN
    return bool(is_usable), not of_u <= most_growth(problem) ** 2 * of_a
