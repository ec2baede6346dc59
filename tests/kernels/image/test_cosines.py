"""Polynomials of the image kernel, evaluated as it does, over a quarter of a turn."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
from argand.runtime.compile.compiler import SOURCES

Floats = npt.NDArray[np.float32]
HEADER = (SOURCES / "image" / "weights.cuh").read_text()


def coefficients(name: str) -> list[float]:
    """Those of a polynomial in the header, the constant first."""
    found = re.search(rf"constexpr float {name}\[\] = {{([^}}]+)}};", HEADER)
    assert found is not None
    return [float(number.strip().removesuffix("f")) for number in found[1].split(",")]


def polynomial(numbers: list[float], x: Floats) -> Floats:
    """By fused multiply-adds: in fp64 a product of two numbers of fp32 is exact."""
    found = np.full_like(x, numbers[-1])
    for number in numbers[-2::-1]:
        sums = found.astype(np.float64) * x + np.float64(np.float32(number))
        found = sums.astype(np.float32)
    return found


def test_polynomials_are_off_by_at_most_a_unit_of_2_to_the_minus_23() -> None:
    """Phases are in units of 2^-32 turns, which fp32 rounds."""
    phases = np.arange(-(1 << 29), 1 << 29, 8191)
    exact = np.pi * phases * 2.0**-31
    x = phases.astype(np.float32) * np.float32(2.0**-31)
    y = x * x
    sine, cosine = x * polynomial(coefficients("kSine"), y), polynomial(coefficients("kCosine"), y)
    assert np.abs(sine - np.sin(exact)).max() < 2.0**-23
    assert np.abs(cosine - np.cos(exact)).max() < 2.0**-23
    wrong = coefficients("kCosine")
    wrong[2] *= 1.0001
    assert np.abs(polynomial(wrong, y) - np.cos(exact)).max() > 2.0**-23
