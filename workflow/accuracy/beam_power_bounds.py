"""Bounds on powers of beams, for every precision.

Let z^ be a computed beam and z that of the same rounded operands in fp64, |z^ - z| <= d. Over a
bin, with e^2 the sum of d^2 and P that of |z|^2, Cauchy and Schwarz give | sum |z^|^2 - P | <= 2 e
sqrt(P) + e^2. With two polarizations the same holds of I, Q, U and V where e^2 and P are summed
over both, since each is a sum of two products of x and y with a factor of 2 or less.

The rounding of operands is no matter of a bound: its rule is known, so it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Precision
from argand.beam_power.problem import BeamPowerProblem
from argand.gemm.cpu import terms_of
from argand.gemm.operands import Side

from workflow.accuracy.bounds import (
    accumulation_error,
    accumulator_roundoff,
    gamma,
    kept_size,
    on_tensor_cores,
    operand_roundoff,
)
from workflow.accuracy.probabilistic import accumulation_errors, deviations
from workflow.accuracy.underflow import underflow

Array = npt.NDArray[Any]
_BLOCK_VALUES = 1 << 18
"""Beams in fp64 that are made at a time."""


@dataclass(frozen=True)
class Powers:
    """Detected beams in fp64, each ``(batch, outputs, beam, bin)``.

    ``power`` are the results. The others have one output: ``total`` is the power of all
    polarizations, ``moduli`` the sum over polarizations and times of ||a||^2 ||b||^2, the norms
    along antennas, and ``norms`` that of ||a||^2 + ||b||^2.
    """

    power: Array
    total: Array
    moduli: Array
    norms: Array


def detected(
    problem: BeamPowerProblem, weights: Array, samples: Array, held_at: Precision | None = None
) -> Powers:
    """Return the powers of operands in fp64, by zgemm and NumPy, in blocks of bins.

    With ``held_at`` they are those of the operands as that precision holds them, to the bit.
    """
    shape = (problem.batch, problem.outputs, problem.beams, problem.bins)
    power = np.zeros(shape)
    total, moduli, norms = (np.zeros((problem.batch, 1, *shape[2:])) for _ in range(3))
    with np.errstate(all="ignore"):
        for batch, bins, w, x in _blocks(problem, weights, samples, held_at):
            beams = (w @ x).reshape(*w.shape[:2], bins.stop - bins.start, -1)
            summed = np.einsum("pbtn,qbtn->pqbt", beams.conj(), beams)
            own = np.einsum("ppbt->bt", summed).real
            total[batch, 0, :, bins] += own
            if problem.detect == "power":
                power[batch, 0, :, bins] += own
            else:
                xx, yy, xy = summed[0, 0].real, summed[1, 1].real, summed[0, 1]
                for at, value in enumerate((xx + yy, xx - yy, 2 * xy.real, 2 * xy.imag)):
                    power[batch, at, :, bins] += value
            rows, columns = (np.abs(w) ** 2).sum(axis=2), (np.abs(x) ** 2).sum(axis=1)
            of_bins = columns.reshape(len(w), bins.stop - bins.start, -1).sum(axis=2)
            moduli[batch, 0, :, bins] += np.einsum("pb,pt->bt", rows, of_bins)
            repeated = beams.shape[-1] * rows[:, :, None]
            norms[batch, 0, :, bins] += (repeated + of_bins[:, None]).sum(axis=0)
    return Powers(power, total, moduli, norms)


def _blocks(
    problem: BeamPowerProblem, weights: Array, samples: Array, held_at: Precision | None
) -> Iterator[tuple[int, slice, Array, Array]]:
    """Yield results, bins, and (polarization, ...) operands of them in fp64."""
    operands = [
        np.broadcast_to(one, (*problem.operand_batch, *one.shape[-2:])).reshape(
            problem.batch, problem.polarizations, *one.shape[-2:]
        )
        for one in (weights, samples)
    ]
    for batch in range(problem.batch):
        w = _held(operands[0][batch], held_at, "a")
        for bins, times in _stretches(problem):
            yield batch, bins, w, _held(operands[1][batch][..., times], held_at, "b")


def _stretches(problem: BeamPowerProblem) -> Iterator[tuple[slice, slice]]:
    """Yield bins and their samples, as many as fit a block, or parts of one bin."""
    n, most = problem.integrate, max(1, _BLOCK_VALUES // max(1, problem.beams))
    if n > most:
        for at in range(problem.bins):
            for start in range(at * n, (at + 1) * n, most):
                yield slice(at, at + 1), slice(start, min(start + most, (at + 1) * n))
        return
    for first in range(0, problem.bins, most // n):
        last = min(first + most // n, problem.bins)
        yield slice(first, last), slice(first * n, last * n)


def _held(x: Array, precision: Precision | None, side: Side) -> Array:
    """Return an operand in fp64, as a precision holds it where one is given: the sum of its terms.

    Each column of samples has a scale of its own, so pieces along time are those of the whole.
    """
    if precision is None:
        return x.astype(complex)
    with np.errstate(all="ignore"):
        terms = terms_of(x, "N", precision, side)
        found = np.zeros(terms.values[0].shape, complex)
        for term in reversed(terms.values):
            found += term
        if terms.exponents is None:
            return found
        return np.asarray(found * np.ldexp(1.0, -terms.exponents))


def beam_deviation(precision: Precision, antennas: int, backend: str) -> float:
    """Return c with |part of (z^ - z)| <= c ||a|| ||b||, z of rounded operands, without underflow.

    Sums are those of `accumulation_error`; products that are not kept come on top, and the fp64
    reference errs as well. A scaled precision may be computed where nothing is scaled
    (`Precision.without_scales`), so what scaling loses of a line's largest component is not known:
    once for each operand, and twice for what is dropped.
    """
    return _coefficient(precision, antennas, accumulation_error(precision, antennas, backend))


def probable_deviation(
    precision: Precision, antennas: int, backend: str, parts: float, coherence: float
) -> float:
    """Return c that one of ``parts`` parts of right beams exceeds with a probability of 1e-9.

    Partial sums are at most ||a|| ||b||, so `accumulation_errors` are relative to that. Those of
    two terms on tensor cores are the worst case: their model has promotions twice as often as ours.
    """
    worst = accumulation_error(precision, antennas, backend)
    if on_tensor_cores(precision, backend) and precision.terms > 1:
        return _coefficient(precision, antennas, worst)
    sums = accumulation_errors(precision, antennas, backend, coherence)
    return _coefficient(
        precision, antennas, min(worst, sums.mean + deviations(parts) * sums.deviation)
    )


def _coefficient(precision: Precision, antennas: int, accumulation: float) -> float:
    k, v = antennas, operand_roundoff(precision)
    summed = accumulation * kept_size(precision)
    lost = underflow(precision, "cpu").of_largest  # of scaling, the same everywhere
    scaled = 2 * (2 * math.sqrt(2 * k) * lost + 2 * k * lost**2)
    return (summed + precision.dropped + scaled) * (1 + v) ** 2 + 2 * gamma(2 * k, 2.0**-53)


def allowed(
    problem: BeamPowerProblem, exact: Powers, held: Powers, precision: Precision, backend: str,
    coherence: float | None = None,
) -> Array:  # fmt: skip
    """Return the bound of each power's error: the worst case, or with ``coherence`` a probable one.

    Args:
        problem: the sizes.
        exact: powers of the operands.
        held: powers of the operands as the precision holds them (``held_at``).
        precision: the precision of the result.
        backend: ``cpu`` or ``cuda``, which sum differently.
        coherence: the factor by which roundings exceed independent ones on these data, for the
            bound that all right powers together exceed with a probability of 1e-9; None for the
            worst case.

    A part of a beam is within `beam_deviation` or `probable_deviation`, and what underflow takes:
    twice (`underflow`) sqrt(2) of an operand's error times the sum of the other's moduli, at most
    sqrt(k) times its norm, and that of each operation. By Minkowski these add up as norms over a
    bin. A power is the sum of two squares of each time and polarization, rounded in any order
    (`BeamPowerProblem.roundings`).
    """
    terms, k = underflow(precision, backend), problem.antennas
    u, times = accumulator_roundoff(precision), problem.polarizations * problem.integrate
    lost = 2 * math.sqrt(2 * k) * terms.operand
    every = 4 * k * terms.operand**2 + (2 * k * len(precision.products) + 4) * terms.result
    c = beam_deviation(precision, k, backend)
    if coherence is not None:
        beams = 2.0 * problem.batch * problem.beams * problem.bins * times
        c = probable_deviation(precision, k, backend, beams, coherence)
    with np.errstate(all="ignore"):
        parts = c * np.sqrt(exact.moduli)
        parts += lost * np.sqrt(2 * exact.norms) + every * math.sqrt(times)
        e = math.sqrt(2) * parts
        off = 2 * e * np.sqrt(held.total) + e**2
        roundings = problem.roundings
        summed = gamma(roundings, u) + 2 * gamma(roundings, 2.0**-53)
        off += summed * (held.total + off) + roundings * terms.result
        return np.asarray(np.abs(held.power - exact.power) + off)
