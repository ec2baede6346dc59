"""Squared magnitudes of results, in one pass over them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from argand.checks import check_out
from argand.device import is_cupy_array


def squared(x: Any, out: Any = None) -> Any:
    """Return |x|^2 of an array of NumPy or CuPy, in ``out`` where it is given.

    Raises ValueError for an ``out`` of another shape or type.
    """
    check_out(out, tuple(x.shape), str(x.real.dtype))
    if is_cupy_array(x):
        import cupy

        return _kernel()(x, cupy.empty(x.shape, x.real.dtype) if out is None else out)
    return np.add(x.real**2, x.imag**2, out=out)


@cache
def _kernel() -> Any:
    import cupy

    return cupy.ElementwiseKernel("T z", "P p", "p = norm(z)", "argand_power")
