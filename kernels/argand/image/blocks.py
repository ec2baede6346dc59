"""Images in blocks of directions through BLAS: NumPy's at every precision, cuBLAS at fp64 and fp32.

With R = X + i Y and w = c + i s, all real, X symmetric and Y antisymmetric,

    w^H R w = c^T X c + s^T (X s + 2 Y c),

three real products of antennas^2, where a complex one has four. Operands are rounded and split as
the kernel does it, so what a precision costs in accuracy can be seen without a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.cpu_cosines import cosines_and_sines
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem, as_complex
from argand.precision import Precision
from argand.rounding import power_of_two, scale_exponents, split
from argand.runtime.cpu.one_core import numpy_on_one_core
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import ONE_CORE, SEVERAL_CORES, on_all_cores

BLOCK_VALUES = {"numpy": 1 << 18, "cupy": 1 << 24}
"""Weights made, or differences of covariances, at a time: on the CPU they and their products stay
in the last-level cache."""
_SHARED_VALUES = 1 << 17
"""Weights of a channel from which threads pay: some 1 ms on one core."""


def image_in_blocks(
    problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, out: Any, arrays: Any
) -> Any:
    """Return the power (..., direction) of a problem, whose arguments are checked.

    Args:
        problem: the sizes and the precision.
        r: (..., channel, antenna, antenna).
        x, f, s: positions about the centre (antenna, 3), frequencies, and directions (direction,
            3), in float64 on the host.
        out: where the result goes, or None.
        arrays: NumPy or CuPy, which holds ``r``.

    Memory beside the result: the covariances of one channel, and some tens of MiB of weights.
    """
    kind = problem.dtype
    found = arrays.empty(problem.shape, kind) if out is None else out
    total = arrays.zeros((problem.matrices, problem.directions), kind)
    if problem.matrices:
        r = r.reshape(problem.matrices, *r.shape[-3:])
    step = max(1, BLOCK_VALUES[arrays.__name__] // max(1, problem.antennas))
    if arrays is np and problem.antennas * problem.directions >= _SHARED_VALUES:
        step = min(step, -(-problem.directions // available_cores()))
    chunks = _chunks(problem, arrays, step)
    place, toward = arrays.asarray(x), arrays.asarray(s.T)
    for channel in range(problem.channels if total.size and problem.antennas else 0):
        forms = [_RealForms(r[chunk, channel], problem.precision, arrays) for chunk in chunks]
        turns = problem.sign * (float(f[channel]) / SPEED_OF_LIGHT)

        def work(start: int, forms: list[_RealForms] = forms, turns: float = turns) -> None:
            some = slice(start, min(start + step, problem.directions))
            parts = _weights(place, toward[:, some], turns, kind, arrays)
            c, s_terms = (_terms(part, problem.precision) for part in parts)
            for chunk, form in zip(chunks, forms, strict=True):
                total[chunk, some] += form.power(c, s_terms)

        starts = range(0, problem.directions, step)
        if arrays is np:  # NumPy would warn of a channel that is not finite
            share = partial(on_all_cores, partial(quietly, work), starts)
            if _is_on_one_core(problem, step):
                numpy_on_one_core(share)
            else:
                share()
        else:
            for start in starts:
                work(start)
    found[...] = total.reshape(problem.shape)
    return found


def _is_on_one_core(problem: ImageProblem, step: int) -> bool:
    """Return whether NumPy's BLAS is to take one core for products that it would share.

    Several blocks have a thread of ours each, and one of few directions takes less time so.
    """
    product = problem.antennas**2 * min(step, problem.directions)
    if available_cores() == 1 or product <= ONE_CORE:
        return False
    return step < problem.directions or product < SEVERAL_CORES


def _chunks(problem: ImageProblem, arrays: Any, step: int) -> list[slice]:
    """Return the matrices that are multiplied at a time, as rows of one: as many as gain by it."""
    antennas, values = problem.antennas, BLOCK_VALUES[arrays.__name__]
    columns = min(step, problem.directions)
    together = values // max(1, antennas * max(antennas, columns))
    if arrays is np:  # several cores would wait for each other
        together = min(together, ONE_CORE // max(1, antennas * antennas * columns))
    together = max(1, together)
    return [slice(first, first + together) for first in range(0, problem.matrices, together)]


class _RealForms:
    """Covariances (matrix, antenna, antenna) as X and 2 Y in the terms of a precision."""

    def __init__(self, r: Any, precision: Precision, arrays: Any) -> None:
        kind = precision.real_output
        self._shape = r.shape
        with np.errstate(all="ignore"):
            r = as_complex(r)
            twice = r + r.swapaxes(-1, -2).conj()
            parts = (0.5 * twice.real, twice.imag)
            self._descale: Any = None
            if precision.scaled:
                # The kernel's matrix has twice the real parts, too: one scale for all of it.
                both = np.stack([twice.real, twice.imag], axis=1).astype(kind)
                exponents = scale_exponents(both.reshape(len(r), -1), -1, precision.operand)
                self._descale = power_of_two(-exponents)
                terms = [split(part, precision, exponents[..., None]) for part in parts]
            else:
                own = [arrays.ascontiguousarray(part, kind) for part in parts]
                terms = [_terms(part, precision) for part in own]
        # As rows of one matrix, which takes less time than a product of each.
        self._terms = [[one.reshape(-1, one.shape[-1]) for one in part] for part in terms]
        self._products = precision.products

    def power(self, c: list[Any], s: list[Any]) -> Any:
        """Return the power (matrix, direction) of weights c + i s by terms (antenna, direction)."""
        x, y = self._terms
        left, right = self._product(x, c), self._product(x, s)
        right += self._product(y, c)
        left *= _sum(c)
        right *= _sum(s)
        left += right
        found = left.sum(axis=1)
        return found if self._descale is None else found * self._descale

    def _product(self, matrix: list[Any], weights: list[Any]) -> Any:
        pairs = iter(self._products)
        i, j = next(pairs)
        found = matrix[i] @ weights[j]
        for i, j in pairs:
            found += matrix[i] @ weights[j]
        return found.reshape(*self._shape[:2], -1)


def _terms(x: Any, precision: Precision) -> list[Any]:
    return [x] if precision.exact_operands else split(x, precision)


def _sum(terms: list[Any]) -> Any:
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = total + term
    return total


def _weights(place: Any, toward: Any, turns: float, kind: str, arrays: Any) -> Iterator[Any]:
    """Return cosines and sines (antenna, direction) of phases, reduced to half a turn in fp64."""
    phase = place @ toward
    phase *= turns
    if arrays is np:
        parts = np.empty((2, *phase.shape), kind)
        cosines_and_sines(phase, *parts)
        return iter(parts)
    phase -= arrays.rint(phase)
    phase *= 2 * math.pi
    phase = phase.astype(kind, copy=False)
    return iter((arrays.cos(phase), arrays.sin(phase)))
