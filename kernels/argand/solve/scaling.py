"""Norms of operands, and powers of two that keep them away from the limits of their type."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_VALUES = 1 << 26
"""Elements whose magnitudes are held at a time."""
_LOWEST = -1 << 12
"""An exponent below that of any quotient of two numbers."""


def norm(x: Any, arrays: Any) -> float:
    """Return the largest sum of magnitudes along a row of x (n, m), in fp64: NaN where x has NaN.

    n and m are at least 1, ``arrays`` is NumPy or CuPy. Infinite also where finite sums overflow.
    """
    sums = [arrays.abs(block).sum(axis=1, dtype=np.float64).max() for block in blocks_of(x)]
    return float(sums[0] if len(sums) == 1 else arrays.stack(sums).max())


def blocks_of(x: Any) -> list[Any]:
    """Return views of consecutive rows of x (n, m) with at most `_VALUES` elements each."""
    step = max(1, _VALUES // max(1, x.shape[1]))
    return [x[start : start + step] for start in range(0, len(x), step)]


def safe_norms(working: str) -> tuple[float, float]:
    """Return between which norms neither factors nor solutions leave the range of a type."""
    limit = int(np.finfo(working).maxexp) // 4
    return 2.0**-limit, 2.0**limit


class ScaledSystem(NamedTuple):
    """A system a x = b near 1: x 2^``exponent`` solves the system that it was made from.

    ``norm`` is the maximum norm of ``a``.
    """

    a: Any
    b: Any
    norm: float
    exponent: int


def scaled_system(a: Any, b: Any, working: str, arrays: Any) -> ScaledSystem:
    """Return the system a x = b with a and b near 1.

    Each is `scaled`; where rows of a are far apart, each row of both has its own power of two.
    Raises ValueError where a or b is not finite.
    """
    rows = far_rows(a, working, arrays)
    if rows is None:
        left, right = scaled(a, "a", working, arrays), scaled(b, "b", working, arrays)
        return ScaledSystem(left.x, right.x, left.norm, right.exponent - left.exponent)
    sizes = _largest_of_rows(b, "b", arrays)[:, None]
    shift = int(arrays.where(sizes > 0, arrays.frexp(sizes)[1] - rows, _LOWEST).max())
    # A row of zeros stays as it is: the power may be infinite.
    b = times_power(b, arrays.where(sizes > 0, -rows - shift, 0))
    a = times_power(a, -rows)
    return ScaledSystem(a, b, norm(a, arrays), shift)


def far_rows(a: Any, working: str, arrays: Any) -> Any:
    """Return (n, 1) the exponent of each row's largest part, or None.

    None where one power brings all rows between the safe norms. Elimination divides a row by
    another, and by rows further apart a multiplier may become 0. The exponent of a row of zeros,
    by which a is singular, is 0.

    Raises ValueError where a is not finite.
    """
    sizes = _largest_of_rows(a, "a", arrays)
    exponents = arrays.frexp(sizes)[1]
    least, most = safe_norms(working)
    near = 2.0 ** int(exponents.min() - exponents.max()) >= least / most
    return None if near else exponents[:, None]


class Scaled(NamedTuple):
    """An array x near 1 that stands for x 2^``exponent``, and the maximum norm of x."""

    x: Any
    exponent: int
    norm: float


def scaled(x: Any, name: str, working: str, arrays: Any) -> Scaled:
    """Return x near 1, by a power of two.

    It is x itself where its norm is 0 or lies so near 1 that neither the factors nor what they
    solve for leave the range of the type ``working``: within a quarter of its exponents.

    Args:
        x: (n, m), complex, n and m at least 1.
        name: what messages call x.
        working: complex64 or complex128.
        arrays: NumPy or CuPy.

    Raises ValueError where x is not finite.
    """
    least, most = safe_norms(working)
    with np.errstate(over="ignore", invalid="ignore"):
        size = norm(x, arrays)
    if size == 0 or least <= size <= most:
        return Scaled(x, 0, size)
    exponent = int(np.frexp(float(_largest_of_rows(x, name, arrays).max()))[1])
    x = times_power(x, -exponent)
    return Scaled(x, exponent, norm(x, arrays))


def times_power(x: Any, exponent: Any) -> Any:
    """Return x 2^exponent, exact but where the result is subnormal or leaves the type's range.

    ``exponent`` is an integer, or has one for each column of x, or (n, 1) one for each row.
    """
    # One power may leave the range that the result stays in, and two the 2097 powers from the
    # smallest number to the largest. What overflows is infinite: a complex product would make NaN.
    found = x.astype(np.complex128)
    third = exponent // 3
    for power in (third, third, exponent - 2 * third):
        found.real *= 2.0**power
        found.imag *= 2.0**power
    return found


def in_type(x: Any, dtype: str, arrays: Any) -> Any:
    """Return a copy of x of a type, row-major.

    Raises LinAlgError where x is beyond the range of the type.
    """
    with np.errstate(over="ignore"):
        found = x.astype(dtype, order="C")
    if not arrays.isfinite(found).all():
        raise np.linalg.LinAlgError(
            f"x leaves the range of {dtype}: divide b, or multiply a, by a power of two"
        )
    return found


def _largest_of_rows(x: Any, name: str, arrays: Any) -> Any:
    """Return the largest magnitude of a real or imaginary part of each row.

    Raises ValueError where x is not finite.
    """
    sizes = arrays.concatenate([
        arrays.maximum(*(arrays.abs(part).max(axis=1) for part in (block.real, block.imag)))
        for block in blocks_of(x)
    ])  # fmt: skip
    if not arrays.isfinite(sizes).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity in it")
    return sizes
