"""Discrete Fourier transforms: the problem, and the call that a user makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from argand.device import is_cuda_array
from argand.dft import cpu as numpy_dft
from argand.dft.cpu_butterfly import butterfly_dft
from argand.dft.cpu_three_kernel import passes_dft
from argand.dft.heuristics import butterflies_for
from argand.dft.method import Method, check_length, method_for
from argand.dft.three_kernel import PassesPlan
from argand.precision import Precision, get_precision
from argand.runtime.checks import check_out

Norm = Literal["backward", "ortho", "forward"]
NORMS: tuple[Norm, ...] = get_args(Norm)


@dataclass(frozen=True)
class DftProblem:
    """What a call computes, without its data: transforms of ``rows`` rows.

    Attributes:
        rows, length: how many transforms, and N.
        inverse: whether exp(+2 pi i j k / N) is meant.
        norm: where 1 / N goes, as in scipy.fft.
        precision: of the products with the matrices; fp32 and fp64 are a library's.
    """

    rows: int
    length: int
    inverse: bool
    norm: Norm
    precision: Precision

    @property
    def factor(self) -> float:
        """What the sums are multiplied by."""
        if self.norm == "ortho":
            return float(self.length**-0.5)
        return 1 / self.length if (self.norm == "backward") == self.inverse else 1.0

    @property
    def method(self) -> Method | None:
        """Of which stages it consists; None where a library computes it (fp32 and fp64)."""
        return None if self.precision.exact_operands else method_for(self.length)


def dft(
    x: Any,
    axis: int = -1,
    *,
    n: int | None = None,
    inverse: bool = False,
    norm: str = "backward",
    precision: str | Precision = "3xfp16",
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Any:
    """Discrete Fourier transforms along one axis, at a precision.

    Args:
        x: real or complex, any rank from 1 on and any strides; NumPy arrays are computed on the
            CPU, CuPy arrays on their GPU. It is converted to the precision's type first.
        axis: that is transformed.
        n: its length, from 1 to 2^26: x is cut or filled up with zeros. None is x's own.
        inverse: exp(+2 pi i j k / n) in place of exp(-2 pi i j k / n).
        norm: ``backward`` (1 / n on the inverse), ``ortho`` (1 / sqrt(n) on both) or ``forward``.
        precision, rounding: as in `argand.gemm`. At 3xfp16 errors are fp32's whatever the
            amplitude: each transform is scaled by a power of two. fp32 and fp64 are cuFFT's on a
            GPU and NumPy's on the CPU; `argand.dft.gpu.plan_of` says what else is.
        out: where the result goes. It may be x.

    Returns:
        The shape of x, with n along the axis; complex128 at fp64 and complex64 otherwise.

    Raises:
        ValueError: no axes, an axis out of range, n out of range, an unknown norm or precision, a
            wrong out.
        TypeError: x that holds no numbers; x and out on different devices.
    """
    on_gpu = is_cuda_array(x)
    x = x if on_gpu else np.asarray(x)
    if out is not None and is_cuda_array(out) != on_gpu:
        raise TypeError("x and out must both be NumPy arrays or both be CuPy arrays")
    if x.dtype.kind not in "biufc":
        raise TypeError(f"x must hold real or complex numbers, got {x.dtype}")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis must be one of x's {x.ndim}, got {axis}")
    length = x.shape[axis] if n is None else n
    check_length(length)
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {list(NORMS)}, got {norm!r}")
    row = get_precision(precision, rounding)
    axis %= x.ndim
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    check_out(out, shape, row.output)
    problem = DftProblem(math.prod(shape) // length, length, inverse, norm, row)
    if on_gpu:
        from argand.dft import gpu as cuda_dft

        return cuda_dft.dft(problem, x, axis, out)
    turned = np.moveaxis(fitted(x, axis, length), axis, -1)
    rows = turned.reshape(problem.rows, length).astype(row.output, copy=False)
    plan = None if row.exact_operands else butterflies_for(length)
    if plan is None:
        found = numpy_dft.dft(problem, rows, problem.method)
    elif isinstance(plan, PassesPlan):
        found = passes_dft(problem, rows, plan)
    else:
        found = butterfly_dft(problem, rows, plan)
    found = np.moveaxis(found.reshape(turned.shape), -1, axis)
    if out is None:
        return found
    out[...] = found
    return out


def fitted(x: Any, axis: int, length: int) -> Any:
    """x cut or filled up with zeros to a length along an axis; x itself where it has it."""
    have = x.shape[axis]
    if have == length:
        return x
    kept = (slice(None),) * axis + (slice(0, min(have, length)),)
    if have > length:
        return x[kept]
    arrays = _module(x)
    found = arrays.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    found[kept] = x
    return found


def _module(x: Any) -> Any:
    if not is_cuda_array(x):
        return np
    import cupy

    return cupy
