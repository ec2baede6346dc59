"""The bound on residuals of `argand.solve_hermitian`, of systems with one matrix each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from argand.hermitian.bounds import backward_bound, probable_bound

from workflow.accuracy.lines import norm_along

Array = npt.NDArray[Any]


def solver_bound(matrices: Array, dtype: str, *, probable: bool) -> Array:
    """Return the bound of a residual over the norm of its solution, for each matrix (..., n, n).

    Args:
        matrices: Hermitian and positive definite, in fp64.
        dtype: type in which systems are solved, ``complex64`` or ``complex128``.
        probable: return the probable bound, which is no larger than the worst case.
    """
    n = matrices.shape[-1]
    trace = np.trace(matrices, axis1=-2, axis2=-1).real
    worst = np.asarray(backward_bound(n, dtype) * trace)
    if not probable:
        return worst
    size = norm_along(matrices, (-2, -1))
    likely = probable_bound(n, dtype, 1.0, 1.0) * np.sqrt(trace) * np.sqrt(size)
    return np.asarray(np.minimum(worst, likely))
