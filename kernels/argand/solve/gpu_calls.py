"""Systems on a GPU that cuSOLVER's getrf factors whole.

b is factored beside A, as columns beyond those of the matrix, which leaves L^-1 P b there. Kernels
of ours do the rest: they copy both, substitute back, and measure the backward error of x, for which
one reads A once. All is queued at once, and the host waits once. Singular systems, and those that
are to be scaled, go on to `argand.solve.api`.
"""

from __future__ import annotations

import math
from typing import Any

import cupy
import numpy as np

from argand.device import gpu
from argand.runtime.complex_types import ITEM
from argand.solve.gpu import GpuLibrary, WholeFactors, factor, trsm
from argand.solve.problem import SolveProblem
from argand.solve.refine import Solution, accepted, refined
from argand.solve.scaling import in_type, norm, safe_norms
from argand.solve.whole_launch import WholeLaunches, copy_launch, whole_launches
from argand.solve.whole_plan import state_numbers

_OWN_PRODUCTS = 1 << 30
"""Products of complex numbers in A x up to which kernels of ours substitute back and measure x. In
larger ones trsm and zgemm gain more by tensor cores than their launches and the host take, as a
trial on an H200 showed, which no command repeats; at 2^30 either may be faster."""


def solved(problem: SolveProblem, a: Any, b: Any) -> Solution | None:
    """Return the solution of A x = b, x with b's shape; waits for the GPU.

    It is None where a column has no pivot, and where A, b or x is not finite or so far from 1 that
    the system may have to be scaled; of a problem with a fallback also where the backward error is
    not accepted.

    Args:
        problem: one that is zgesv's or cgesv's, n and the columns at least 1.
        a, b: its operands, on the current device.

    Raises numpy.linalg.LinAlgError where the backward error of a problem without a fallback stays
    larger than what is accepted, and where x is beyond the range of its type.
    """
    n, columns, shape = problem.n, problem.columns, b.shape
    a = a.astype(problem.dtype, copy=False)
    if not (a.flags.c_contiguous or a.flags.f_contiguous):
        a = cupy.ascontiguousarray(a)
    b = b.astype(problem.dtype, copy=False).reshape(n, columns)
    by_rows, device = bool(a.flags.c_contiguous), gpu(cupy.cuda.Device().id)
    form = n, columns, problem.dtype, problem.working, by_rows, device
    copy = copy_launch(*form)
    launches = whole_launches(*form) if n * n * columns <= _OWN_PRODUCTS else None
    system = cupy.empty((n, n + columns), problem.working, order="F")
    # Pivots, what getrf and getrs say, and the state of our kernels.
    found = cupy.empty(n + 2 + state_numbers(n, columns), np.int32)
    copy({
        "a": a.data.ptr, "b": b.data.ptr, "b_row": b.strides[0], "b_column": b.strides[1],
        "system": system.data.ptr, "state": found.data.ptr + found.itemsize * (n + 2),
    })  # fmt: skip
    factor(system, found)
    if launches is not None:
        error, x = _substituted(problem, launches, a, b, system, found)
        if not math.isfinite(error):
            return None
        in_range = problem.dtype == problem.working or cupy.isfinite(x).all()
        if in_range and error <= accepted(n, problem.unit_roundoff):
            return Solution(x.reshape(shape), error, 0, problem.precision)
    else:
        trsm(system[:, :n], n, system[:, n:], upper=True, unit=False, transposed=False)
        if int(found[n]):
            return None
    return _refined(problem, a, b, system, found, shape)


def _substituted(
    problem: SolveProblem, launches: WholeLaunches, a: Any, b: Any, system: Any, found: Any
) -> tuple[float, Any]:
    """Substitute back; return the largest backward error of a column, and x in b's type.

    The error is that of `argand.solve.refine`: NaN where a column has no pivot, and not finite
    where A, b or x is not.
    """
    n, columns = b.shape
    pivots, item = found.data.ptr, found.itemsize
    state, x = pivots + item * (n + 2), system.data.ptr + ITEM[problem.working] * n * n
    launches.substitute({"u": system.data.ptr, "x": x, "state": state + item})
    parts, measures = cupy.empty((launches.parts, 2)), cupy.empty(1 + 3 * (columns + 1))
    launches.multiply({"a": a.data.ptr, "x": x, "partials": parts.data.ptr})
    result = cupy.empty((n, columns), problem.dtype)
    launches.measure({
        "partials": parts.data.ptr, "x": x, "b": b.data.ptr, "b_row": b.strides[0],
        "b_column": b.strides[1], "info": pivots + item * n, "error": measures.data.ptr,
        "measures": measures.data.ptr + measures.itemsize, "result": result.data.ptr,
        "ended": state,
    })  # fmt: skip
    return float(measures[0]), result


def _refined(
    problem: SolveProblem, a: Any, b: Any, system: Any, found: Any, shape: tuple[int, ...]
) -> Solution | None:
    """Return the solution, refined where its error is not accepted; None as in `solved`."""
    n, (least, most) = problem.n, safe_norms(problem.working)
    norm_of_a, norm_of_b = norm(a, cupy), norm(b, cupy)
    if not (least <= norm_of_a <= most and least <= norm_of_b <= most):
        return None
    try:
        solution = refined(
            a, b, WholeFactors(system[:, :n], found, problem.precision), norm=norm_of_a,
            unit_roundoff=problem.unit_roundoff, library=GpuLibrary(),
            x=system[:, n:].astype(np.complex128),
        )  # fmt: skip
    except np.linalg.LinAlgError:
        if problem.fallback is None:
            raise
        return None
    return solution._replace(x=in_type(solution.x, problem.dtype, cupy).reshape(shape))
