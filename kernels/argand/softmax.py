"""Softmax over the last axis: the problem, and the calls that a user makes.

One pass over tiles of a row with a running maximum m and a running sum z,

    m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~,

the formulation of Composable Kernel's tile softmax: no element is read twice to find the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from argand import numpy_backend
from argand.device import is_cuda_array
from argand.gemm import check_out
from argand.precision import Precision, get_precision


@dataclass(frozen=True)
class SoftmaxProblem:
    """What a call computes: ``rows`` independent rows of ``columns`` values, or their logarithm."""

    shape: tuple[int, ...]
    log: bool
    precision: Precision

    @property
    def columns(self) -> int:
        """Length of the last axis."""
        return self.shape[-1]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(np.prod(self.shape[:-1], dtype=np.int64))


def softmax(
    x: Any,
    *,
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Any:
    """exp(x) / sum(exp(x)) over the last axis, at a precision.

    Args:
        x: real ``(..., columns)``, any strides. NumPy arrays are computed on the CPU, CuPy arrays
            on their GPU. It is rounded to the precision's operand (fp16 after scaling each row by a
            power of two); exponentials and sums are taken in the accumulator's type.
        precision, rounding: as in `argand.gemm`.
        out: where the result goes.

    Returns:
        The shape of x, float64 at fp64 and float32 otherwise. As in SciPy a row of -inf alone, or
        with +inf or NaN in it, is NaN.

    Raises:
        ValueError: a complex or zero-dimensional x, no columns, an unknown precision, a wrong out.
        TypeError: x and out on different devices.
    """
    return _dispatch(x, False, precision, rounding, out)


def log_softmax(
    x: Any,
    *,
    precision: str | Precision = "fp32",
    rounding: Sequence[str] | str | None = None,
    out: Any = None,
) -> Any:
    """x - log(sum(exp(x))) over the last axis; arguments and errors as in `softmax`."""
    return _dispatch(x, True, precision, rounding, out)


def _dispatch(
    x: Any,
    log: bool,
    precision: str | Precision,
    rounding: Sequence[str] | str | None,
    out: Any,
) -> Any:
    on_gpu = is_cuda_array(x)
    if out is not None and is_cuda_array(out) != on_gpu:
        raise TypeError("x and out must both be NumPy arrays or both be CuPy arrays")
    if not on_gpu:
        x = np.asarray(x)
    if x.ndim == 0 or x.dtype.kind not in "fiub":
        raise ValueError(f"x must be real with at least 1 axis, got {x.dtype} of shape {x.shape}")
    if x.shape[-1] == 0:
        raise ValueError(f"x must have at least one column, got shape {x.shape}")
    problem = SoftmaxProblem(tuple(x.shape), log, get_precision(precision, rounding))
    check_out(out, problem.shape, problem.precision.real_output)
    if on_gpu:
        from argand.cuda_backend import softmax as launch

        return launch(problem, x, out)
    return numpy_backend.softmax(problem, x, out)
