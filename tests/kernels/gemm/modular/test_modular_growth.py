"""Exact products graded as a BLAS: how errors grow with k, whether lines see each other's sizes.

Demmel and others (2024, "How to grade the accuracy of an implementation of the BLAS").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from argand import gemm
from argand.gemm.modular.moduli import MAX_MODULI, MIN_PRECISION_MODULI, NORM_BLOCK, moduli
from argand.gemm.modular.scaling import exponents

from tests.covers import EXHAUSTIVE
from tests.normal import wide_normal

COUNTS = range(MIN_PRECISION_MODULI, MAX_MODULI + 1)
GRADED = COUNTS if EXHAUSTIVE else (7, MAX_MODULI)
K_VALUES = tuple(4**power for power in range(2, 9))
"""16 to 65536."""
STEEPEST = 1.0
"""The steepest slope of log(error) against log(k) that counts as linear."""
_LINES = 5
_SMALL = 2.0**-30
"""Size of half of the lines."""
Array = np.ndarray[Any, Any]


@cache
def graded_case(k: int) -> tuple[Array, Array, Array, Array, Array]:
    """Operands, their product in 80 bits, and |A| |B| of its real and imaginary part."""
    rng = np.random.default_rng(k)
    a, b = wide_normal(rng, _LINES, k), wide_normal(rng, k, _LINES)
    wide = a.astype(np.clongdouble), np.ascontiguousarray(b.T.astype(np.clongdouble))
    exact = np.array([[(row * column).sum() for column in wide[1]] for row in wide[0]])
    ar, ai, br, bi = (abs(x) for x in (a.real, a.imag, b.real, b.imag))
    return a, b, exact, ar @ br + ai @ bi, ar @ bi + ai @ br


@pytest.mark.parametrize("count", GRADED)
def test_errors_grow_at_most_linearly_with_k(count: int) -> None:
    """Element by element, relative to |A| |B|, of both parts apart."""
    errors = []
    for k in K_VALUES:
        a, b, exact, real, imag = graded_case(k)
        off = gemm(a, b, precision=f"{count}xint8").astype(np.clongdouble) - exact
        errors.append([float((abs(off.real) / real).max()), float((abs(off.imag) / imag).max())])
    slopes = np.polyfit(np.log(K_VALUES), np.log(errors), 1)[0]
    assert (slopes <= STEEPEST).all()


def strassen(a: Array, b: Array) -> Array:
    """One level of Strassen's algorithm."""
    (a11, a12), (a21, a22) = ([*np.hsplit(x, 2)] for x in np.vsplit(a, 2))
    (b11, b12), (b21, b22) = ([*np.hsplit(x, 2)] for x in np.vsplit(b, 2))
    p = (
        (a11 + a22) @ (b11 + b22), (a21 + a22) @ b11, a11 @ (b12 - b22), a22 @ (b21 - b11),
        (a11 + a12) @ b22, (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22),
    )  # fmt: skip
    return np.block([[p[0] + p[3] - p[4] + p[6], p[2] + p[4]],
                     [p[1] + p[3], p[0] - p[1] + p[2] + p[5]]])  # fmt: skip


def error_of_small_lines(multiply: Callable[[Array, Array], Array]) -> float:
    """The largest |C^ - C| / (|a_i| |b_j|) where half of the rows and columns are small."""
    rng = np.random.default_rng(1)
    a, b = wide_normal(rng, 16, 64), wide_normal(rng, 64, 16)
    a[8:] *= _SMALL
    b[:, 8:] *= _SMALL
    exact = (a.astype(np.clongdouble)[:, :, None] * b).sum(axis=1)
    sizes = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0))
    return float((abs(multiply(a, b) - exact) / sizes).max())


def test_the_detector_tells_strassen_from_a_product() -> None:
    assert error_of_small_lines(np.matmul) < 1e-15
    assert error_of_small_lines(strassen) > 1e-9


@pytest.mark.parametrize("count", COUNTS)
def test_small_lines_are_as_accurate_as_large_ones(count: int) -> None:
    """To the bound, which counts each line by its own size. Both parts are rounded by 2^-53."""
    error = error_of_small_lines(partial(gemm, precision=f"{count}xint8"))
    assert error <= moduli(count).relative_truncation(64) + 2.0**-52


def test_a_component_moves_by_no_more_than_its_lines_norm_allows() -> None:
    """The smallest line that is scaled by half as much, of one large number and many small ones.

    These have as much energy together, so that counting each in whole units overrates it most.
    """
    whole, k = moduli(9), NORM_BLOCK
    line = np.full((1, k), (1 + 1j) / np.sqrt(2 * k))
    line[0, 0] = 1
    least, most = 1.0, 2.0
    for _ in range(50):
        middle = (least + most) / 2
        fewer = exponents(middle * line, whole)[0] < exponents(line, whole)[0]
        least, most = (least, middle) if fewer else (middle, most)
    moved = 2.0 ** (-1 - exponents(most * line, whole)[0]) / np.linalg.norm(most * line)
    assert 1.0002 / whole.largest_squared_norm(k) ** 0.5 < moved <= whole.component_loss(k)
