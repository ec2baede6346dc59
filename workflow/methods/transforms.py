"""Discrete Fourier transforms as matrix products: factors, tables, application.

A length N = N1 N2 is the decimation of Cooley and Tukey (1965) with dense factors. With
n = N2 n1 + n2 and k = k1 + N1 k2,

    X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2],

W_N = exp(-2 pi i / N): a product with F_N1, a multiplication by the twiddles W_N^(k1 n2), and a
transform of length N2, which is factored in its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isqrt, prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Norm = Literal["backward", "ortho", "forward"]
Array = npt.NDArray[Any]
Multiply = Callable[..., Any]
"""A product with the signature of `argand.gemm`, its precision already chosen."""

FACTOR_LIMIT = 64
"""Largest composite factor: its table stays in cache, and 64 x 64 = 4096 takes two products."""


@lru_cache(maxsize=1024)
def factors(length: int, limit: int = FACTOR_LIMIT) -> tuple[int, ...]:
    """The dense factors of a length, the largest first: the fewest, then those of smallest sum.

    A factor is at most ``limit`` or prime. The products cost 8 length sum(factors) operations.
    Raises ValueError for a length below 1.
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    if length <= limit or is_prime(length):
        return (length,)
    candidates = [
        tuple(sorted((divisor, *factors(length // divisor, limit)), reverse=True))
        for divisor in _divisors(length)
        if divisor <= limit or is_prime(divisor)
    ]
    return min(candidates, key=lambda chosen: (len(chosen), sum(chosen), chosen))


def is_prime(number: int) -> bool:
    """Whether a number above 1 has no divisor."""
    return number > 1 and all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(2, isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def roots(rows: int, columns: int, length: int, *, inverse: bool = False) -> Array:
    """exp(-+2 pi i j k / length) for j < rows and k < columns, in complex128.

    Only ``length`` of them differ: each is computed once, with its angle within one turn, so that
    no accuracy is lost to a large angle.
    """
    sign = 2 if inverse else -2
    circle = np.exp(sign * 1j * np.pi * (np.arange(length) / length))
    numbers = np.outer(np.arange(rows, dtype=np.int64), np.arange(columns, dtype=np.int64))
    numbers %= length
    return np.asarray(circle[numbers])


def tables(chosen: Sequence[int], *, inverse: bool = False) -> dict[str, Array]:
    """The constants of a transform: ``factor<i>`` (Ni, Ni) and, but for the last, ``twiddle<i>``.

    ``twiddle<i>`` is (Ni, product of the later factors). Complex128.
    """
    constants: dict[str, Array] = {}
    for index, factor in enumerate(chosen):
        rest = prod(chosen[index + 1 :])
        constants[f"factor{index}"] = roots(factor, factor, factor, inverse=inverse)
        if index + 1 < len(chosen):
            constants[f"twiddle{index}"] = roots(factor, rest, factor * rest, inverse=inverse)
    return constants


def scale(length: int, norm: Norm, *, inverse: bool = False) -> float:
    """What SciPy's ``norm`` multiplies a transform of this direction by."""
    if norm == "ortho":
        return float(length**-0.5)
    return 1 / length if (norm == "backward") == inverse else 1.0


def transform(
    x: Any, constants: Mapping[str, Any], multiply: Multiply, *, alpha: float = 1.0, level: int = 0
) -> Any:
    """alpha times the transform of x along its last axis.

    Args:
        x: ``(..., N)``, NumPy or CuPy, not changed.
        constants: the arrays of `tables` for N, in x's type and on its device.
        multiply: the product that each factor takes.
        alpha: see `scale`; it goes into the last product.
        level: the factor to begin with; for the recursion.
    """
    matrix = constants[f"factor{level}"]
    twiddle = constants.get(f"twiddle{level}")
    size = matrix.shape[0]
    if twiddle is None:
        return multiply(x.reshape(-1, size), matrix, alpha=alpha).reshape(x.shape)
    partial = multiply(matrix, x.reshape(-1, size, twiddle.shape[1]))
    partial *= twiddle
    if f"twiddle{level + 1}" in constants:
        rest = transform(partial, constants, multiply, alpha=alpha, level=level + 1)
        return rest.swapaxes(-1, -2).reshape(x.shape)
    # The last product takes its operand transposed, so that k = k1 + N1 k2 comes out in order.
    last = constants[f"factor{level + 1}"]
    return multiply(last, partial, op_b="T", alpha=alpha).reshape(x.shape)
