"""A call of `argand.dft` as one value, without its data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from argand.checks import as_axis, as_flag, as_integer, as_names, check_numbers
from argand.device import array_module
from argand.dft.method import Method, check_length, method_for
from argand.precision import Precision, get_precision, precision_name

Norm = Literal["backward", "ortho", "forward"]
NORMS: tuple[Norm, ...] = get_args(Norm)


@dataclass(frozen=True)
class DftProblem:
    """Transforms of ``rows`` rows, without their data.

    Attributes:
        rows, length: the number of transforms, and N.
        inverse: exp(+2 pi i j k / N) in place of exp(-2 pi i j k / N).
        norm: where 1 / N goes, as in scipy.fft.
        precision: precision of the products with the matrices; a library computes fp32 and fp64.
    """

    rows: int
    length: int
    inverse: bool
    norm: Norm
    precision: Precision

    @property
    def factor(self) -> float:
        """Factor of the results, by the norm."""
        if self.norm == "ortho":
            return float(self.length**-0.5)
        return 1 / self.length if (self.norm == "backward") == self.inverse else 1.0

    @property
    def method(self) -> Method | None:
        """The method of the length; None where a library computes it (fp32 and fp64)."""
        return None if self.precision.exact_operands else method_for(self.length)


def dft_problem(
    x: Any,
    axis: int,
    n: int | None,
    inverse: bool,
    norm: str,
    precision: str | Precision,
    rounding: Sequence[str] | str | None,
) -> tuple[DftProblem, int, tuple[int, ...]]:
    """Return the problem of a call, its axis counted from the first, and the shape of its result.

    Arguments and errors are those of `argand.dft`, for an array x.
    """
    check_numbers("x", x, flags=True)
    inverse = as_flag(inverse, "inverse")
    if not isinstance(rounding, str | None):
        rounding = as_names(rounding, "rounding")
    if not isinstance(precision, str):
        precision = precision_name(precision)
    if not isinstance(norm, str):
        raise ValueError(f"norm must be one of {list(NORMS)}, got {norm!r}")
    if type(axis) is not int:
        axis = as_integer(axis, "axis")
    if n is not None and type(n) is not int:
        n = as_integer(n, "n")
    return _of_shape(x.shape, axis, n, inverse, norm, precision, rounding)


@lru_cache(maxsize=4096, typed=True)
def _of_shape(
    x_shape: tuple[int, ...],
    axis: int,
    n: int | None,
    inverse: bool,
    norm: str,
    precision: str | Precision,
    rounding: tuple[str, ...] | str | None,
) -> tuple[DftProblem, int, tuple[int, ...]]:
    """Return the problem of an array of this shape, kept because finding it takes 1% of a call."""
    rank = len(x_shape)
    axis = as_axis(axis, rank)
    length = x_shape[axis] if n is None else n
    check_length(length)
    if norm not in NORMS:
        raise ValueError(f"norm must be one of {list(NORMS)}, got {norm!r}")
    row = get_precision(precision, rounding)
    shape = (*x_shape[:axis], length, *x_shape[axis + 1 :])
    problem = DftProblem(math.prod(shape) // length, length, inverse, norm, row)
    return problem, axis, shape


def fitted(x: Any, axis: int, length: int) -> Any:
    """Return x truncated or padded with zeros to a length along an axis; x itself if it has it."""
    have = x.shape[axis]
    if have == length:
        return x
    kept = (slice(None),) * axis + (slice(0, min(have, length)),)
    if have > length:
        return x[kept]
    arrays = array_module(x)
    found = arrays.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), x.dtype)
    found[kept] = x
    return found
