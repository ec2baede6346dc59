"""The growth of each precision's error with k, graded as the BLAS graders do.

Demmel and others (2024, "How to grade the accuracy of an implementation of the BLAS") ask that
|fl(AB) - AB| <= f(k) u |A| |B| element by element with f at most linear. They look at the modulus
of complex results. Here the parts are graded apart, each over its own real products,

    Re: |Ar| |Br| + |Ai| |Bi|        Im: |Ar| |Bi| + |Ai| |Br|,

because an algorithm with three multiplications can be accurate in modulus while the imaginary part
of a nearly real product is lost. The bounds of `bounds` hold in this measure too: all
their terms are relative perturbations of these very products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from argand import Device, Precision, gemm, get_precision
from argand.precision import FP64

from workflow.accuracy import bounds
from workflow.accuracy.promotion import promotions
from workflow.accuracy.references import Array
from workflow.storage.checked_json import read_object, write_object

Grade = Literal["A", "C", "F"]
"""A: elementwise, within the bound and no steeper in k than `steepest`. C: only relative to ||A||
||B||, and at most linear. F: not even that."""
Part = Literal["re", "im"]
K_VALUES = tuple(4**power for power in range(2, 8))
"""Lengths of the contraction, 16 to 16384: far past the first sums that a kernel promotes."""
STEEPEST = 1.0
"""The steepest slope of log(error) against log(k) that counts as linear."""
_ROWS, _COLUMNS, _SEEDS = 24, 20, 2
"""Rows, columns and seeds, the same at every k, as a maximum over more elements is larger; few, so
that the longest k is quick (most of the time goes into fp64's reference, which no BLAS
computes)."""
_KINDS = ("normal", "uniform", "positive", "lognormal", "nearly-real")

Product = Callable[[Array, Array, Precision], Array]
"""Multiplies complex64 or complex128 operands (m, k) and (k, n) in host memory."""


@dataclass(frozen=True)
class GrowthRow:
    """The growth of one part's error at one precision.

    ``errors`` holds for each of ``k_values`` the largest componentwise error over all inputs,
    ``bounds`` the a-priori bound there; ``slope`` is that of log(error) against log(k), and
    ``normwise_slope`` the same for max |C^ - C| / (||a_i|| ||b_j||).
    """

    precision: str
    part: Part
    k_values: tuple[int, ...]
    errors: tuple[float, ...]
    bounds: tuple[float, ...]
    slope: float
    normwise_slope: float
    grade: Grade

    @classmethod
    def from_mapping(cls, row: dict[str, Any]) -> GrowthRow:
        """Return a row from a parsed JSON object; raises ValueError where it is not one."""
        try:
            lists = {key: tuple(row[key]) for key in ("k_values", "errors", "bounds")}
            found = cls(**{**row, **lists})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a row of growth: {error}") from None
        if found.part not in get_args(Part) or found.grade not in get_args(Grade):
            raise ValueError(f"not a row of growth: part {found.part!r}, grade {found.grade!r}")
        return found


def grade_growth(
    device: Device, precisions: Iterable[str | Precision], seed: int = 0
) -> list[GrowthRow]:
    """Grade `argand.gemm` on a device at each precision: two rows each, ``re`` and ``im``."""

    def product(a: Array, b: Array, precision: Precision) -> Array:
        if device.backend == "cpu":
            return np.asarray(gemm(a, b, precision=precision))
        import cupy

        with cupy.cuda.Device(device.index):
            found = gemm(cupy.asarray(a), cupy.asarray(b), precision=precision)
            return np.asarray(cupy.asnumpy(found))

    chosen = [get_precision(precision) for precision in precisions]
    return [
        row
        for precision in chosen
        for row in grade_product(product, precision, backend=device.backend, seed=seed)
    ]


def grade_product(
    product: Product, precision: Precision, *, backend: str, seed: int = 0
) -> list[GrowthRow]:
    """Grade any implementation of a complex product; two rows, ``re`` and ``im``."""
    measured = np.array([_worst_errors(product, precision, k, seed) for k in K_VALUES])
    limits = tuple(bounds.product_bound(precision, k, backend) for k in K_VALUES)
    # Below one rounding of the result an error says nothing about growth: an exact sum is level.
    least = bounds.accumulator_roundoff(precision)
    parts: tuple[Part, ...] = get_args(Part)
    rows = []
    for index, part in enumerate(parts):
        errors, normwise = measured[:, 0, index], measured[:, 1, index]
        slopes = growth_slope(errors, least), growth_slope(normwise, least)
        allowed = steepest(precision, backend)
        grade = _grade(errors, normwise, np.array(limits), slopes, allowed)
        rows.append(
            GrowthRow(
                precision.name, part, K_VALUES, tuple(map(float, errors)), limits, *slopes, grade
            )
        )
    return rows


def _grade(
    errors: Array, normwise: Array, limits: Array, slopes: tuple[float, float], allowed: float
) -> Grade:
    if (errors <= limits).all() and slopes[0] <= allowed:
        return "A"
    # |A| |B| <= ||a_i|| ||b_j||, so the same limits hold; several products of sums, as in 3M and
    # Strassen-like schemes, are granted a constant.
    return "C" if (normwise <= 8 * limits).all() and slopes[1] <= STEEPEST else "F"


def steepest(precision: Precision, backend: str) -> float:
    """Return the steepest slope at `K_VALUES` that theory has for a precision.

    It is that of the bound: an error that is steeper will be beyond it one day. In plain fp32 that
    is 1, at tf32 on tensor cores, where an error of sums, linear in k, comes to that of rounded
    operands, 0.26. Promoted sums are truncated within their first slices only, all else that grows
    is rounded to nearest (`promotions`): such errors are independent, and grow as the root, 0.24.
    """
    limits = [bounds.product_bound(precision, k, backend) for k in K_VALUES]
    found = growth_slope(np.array(limits), 0.0)
    if precision.terms > 1 and bounds.on_tensor_cores(precision, backend):
        root = growth_slope(np.sqrt([promotions(k) for k in K_VALUES]), 0.0)
        found = max(found, root)
    return min(found, STEEPEST)


def growth_slope(errors: Array, least: float) -> float:
    """Return the least-squares slope of log(max(errors, least)) over log(k).

    The slope is inf where an error is not finite.
    """
    if not np.isfinite(errors).all():
        return float("inf")
    return float(np.polyfit(np.log(K_VALUES), np.log(np.maximum(errors, least)), 1)[0])


def _worst_errors(product: Product, precision: Precision, k: int, seed: int) -> Array:
    """Return the largest `_errors` at one k over all kinds of numbers."""
    found = []
    for number, kind in enumerate(_KINDS):
        for repeat in range(_SEEDS):
            rng = np.random.default_rng([seed, k, number, repeat])
            a, b = (
                _operand(rng, kind, shape).astype(precision.output)
                for shape in ((_ROWS, k), (k, _COLUMNS))
            )
            found.append(_errors(product(a, b, precision), a, b, precision))
    return np.asarray(np.max(found, axis=0))


def _operand(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    """Return an operand of a kind of numbers.

    The last kind has an imaginary part 2^-13 of the real one.
    """
    if kind == "normal":
        re, im = rng.standard_normal((2, *shape))
    elif kind == "uniform":
        re, im = rng.uniform(-1, 1, (2, *shape))
    elif kind == "positive":
        re, im = rng.uniform(0, 1, (2, *shape))
    elif kind == "lognormal":
        re, im = (rng.random((2, *shape)) - 0.5) * np.exp(rng.standard_normal((2, *shape)))
    else:
        re, im = rng.standard_normal((2, *shape)) * np.array([1, 2.0**-13]).reshape(2, 1, 1)
    return np.asarray(re + 1j * im)


def _errors(computed: Array, a: Array, b: Array, precision: Precision) -> Array:
    """Return (2, 2): the largest componentwise and normwise errors, each of re and im.

    They are against a product in fp64; those of fp64 against one in the platform's widest type,
    because BLAS would be compared with itself otherwise.
    """
    wide = np.clongdouble if precision.accumulator == FP64 else np.complex128
    error = (computed - a.astype(wide) @ b.astype(wide)).astype(complex)
    ar, ai, br, bi = np.abs(a.real), np.abs(a.imag), np.abs(b.real), np.abs(b.imag)
    sizes = ar @ br + ai @ bi, ar @ bi + ai @ br
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
    parts = np.abs(error.real), np.abs(error.imag)
    componentwise = [(part / size).max() for part, size in zip(parts, sizes, strict=True)]
    return np.array([componentwise, [(part / norms).max() for part in parts]])


def write_growth(path: Path, rows: Iterable[GrowthRow]) -> None:
    """Write rows under ``growth`` of a JSON object with its SHA-256, atomically."""
    write_object(path, {"growth": [asdict(row) for row in rows]})


def read_growth(path: Path) -> list[GrowthRow]:
    """Read what `write_growth` wrote; raises ValueError that names the file."""
    content = read_object(path)
    try:
        return [GrowthRow.from_mapping(row) for row in content["growth"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}; delete it and run again") from None
