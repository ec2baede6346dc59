"""Images of few antennas on the CPU at fp64 and fp32, as sums over baselines.

With H = (R + R^H) / 2, w_a = exp(i p_a) and baselines a > b the power is

    w^H R w = sum H_aa + sum 2 Re H_ab cos(p_a - p_b) + 2 Im H_ab sin(p_a - p_b),

one real product of antennas^2 multiplications, whose cosines and sines all covariances share.
`argand.image.cpu_few_antennas` takes four times as many multiplications and two more steps over
their results, but a cosine and sine for each antenna, not for each of antennas (antennas - 1) / 2
baselines.
Neither the choice nor the order of a sum depends on how many covariances there are, so an image is
the same bits alone and among others.

The times behind the choice are in docs/experiments/2026-11-28-small-calls-on-a-cpu.md;
`python -m benchmarks.cpu_calls --kinds image` times drawn images.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.cpu_cosines import cosines_and_sines
from argand.image.hermitian_check import is_small, require_hermitian
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import ONE_CORE_DOT, ONE_CORE_VECTOR, on_all_cores

_BASELINE_ANTENNAS = 4
"""Antennas up to which `BaselineImage` is chosen for any number of directions."""
_MAX_MORE = {"float32": 1 << 12, "float64": 1 << 11}
"""Largest number of cosines of baselines beyond those of antennas, by type. With so many an image
of one covariance takes up to 1.4 times as long as by antennas; several save more than that."""
_BLOCK_VALUES = 1 << 16
"""Cosines and sines, or powers, that are made at a time: they stay in a core's cache."""
_LANES = 64
"""Directions at a time are a multiple of this, where there are more."""
_WEIGHT, _STEP = 320, 12
"""Time of a cosine and sine, and of a step over a power, as a multiple of a multiplication's in a
product."""
_SHARED_TIME = 1 << 24
"""Time of an image from which threads pay, as a multiple of a multiplication's."""


class BaselineImage:
    """The image of a problem of at least one antenna and channel, at an exact precision.

    The terms of a power are H_aa of each antenna, 2 Re H_ab of each baseline and 2 Im H_ab of each,
    antennas^2 together, and those of 0 that pad the groups to equal length. A product sums the
    terms of a group.

    Attributes:
        groups, width: number of groups, and of the terms of each.
    """

    def __init__(self, problem: ImageProblem, dtype: np.dtype[Any]) -> None:
        self._problem, self._n, n = problem, problem.antennas, problem.antennas
        self._read, self._output = np.result_type(dtype, np.complex64), problem.precision.output
        self._dtype, channels = problem.dtype, problem.channels
        a, b = np.tril_indices(n, -1)
        self._differences, self._baselines = np.eye(n)[a] - np.eye(n)[b], len(a)
        diagonal = np.arange(n) * (n + 1)
        self._lower = np.concatenate([diagonal, a * n + b])
        self._upper = np.concatenate([diagonal, b * n + a])
        self.groups = groups_of(n)
        self.width = -(-n * n // self.groups)
        terms = self.groups * self.width
        real = 2 * np.arange(n + len(a))
        # What pads is the imaginary part of a diagonal's entry, which is 0.
        self._order = np.concatenate([real, real[n:] + 1, np.ones(terms - n * n, np.intp)])
        # BLAS multiplies so few columns by a row on one core; several would wait at each product.
        most = ONE_CORE_VECTOR if available_cores() > 1 else _BLOCK_VALUES
        columns, self._step = max(1, most // self.width), max(1, problem.directions)
        if self._step > columns:
            self._step = columns - columns % _LANES or columns
        self._band = max(1, _BLOCK_VALUES // (terms * self._step))
        products = self.groups * min(self._band, channels)
        self._together = max(1, _BLOCK_VALUES // (products * self._step))
        each = _WEIGHT * (1 + len(a)) + problem.matrices * (terms + _STEP)
        self._shared = problem.directions * channels * each >= _SHARED_TIME
        self._is_one_block = (
            not self._shared and self._step == problem.directions
            and self._band >= channels and self._together >= problem.matrices
        )  # fmt: skip

    def placed(self, x: Any, f: Any) -> Any:
        """Return baselines (channel, baseline, 3) in wavelengths; arguments are checked."""
        turns = f * (self._problem.sign / SPEED_OF_LIGHT)
        return turns[:, None, None] * self._differences.dot(x)

    def __call__(self, r: Any, baselines: Any, s: Any, out: Any) -> Any:
        """Return the power of `placed` baselines and checked directions (direction, 3).

        Raises ValueError for a matrix that is not Hermitian.
        """
        found = quietly(self._compute, r, baselines, s).reshape(self._problem.shape)
        if out is None:
            return found
        out[...] = found
        return out

    def _compute(self, r: Any, baselines: Any, s: Any) -> Any:
        """Return the power (matrix, direction)."""
        numbers = self._numbers(r)
        if self._is_one_block:
            return self._power(numbers, self._weights(baselines, s.T))
        step, together, band = self._step, self._together, self._band
        found = np.empty((self._problem.matrices, self._problem.directions), self._dtype)

        def work(start: int) -> None:
            some = slice(start, start + step)
            toward = s[some].T
            for first in range(0, len(baselines), band):
                z = self._weights(baselines[first : first + band], toward)
                each = slice(first * self.groups, (first + band) * self.groups)
                for one in range(0, len(found), together):
                    chunk = slice(one, one + together)
                    power = self._power(numbers[each, chunk], z)
                    if first:
                        power += found[chunk, some]
                    found[chunk, some] = power

        starts = range(0, len(s), step)
        if self._shared and available_cores() > 1:
            on_all_cores(partial(quietly, work), starts)
        else:
            for start in starts:
                work(start)
        return found

    def _numbers(self, r: Any) -> Any:
        """Return the terms' numbers as (product, matrix, width), of covariances that it checks.

        Those of the diagonal are twice H_aa.
        """
        n = self._n
        flat = np.ascontiguousarray(r, self._read).reshape(-1, n * n)
        entries, mirrored = flat.take(self._lower, 1), flat.take(self._upper, 1)
        np.conjugate(mirrored, mirrored)
        apart = entries - mirrored
        entries += mirrored
        if not (r.size <= ONE_CORE_DOT and is_small(apart, flat[:, 0])):
            require_hermitian(r, np)
            # Only what is not finite remains of the diagonal's imaginary parts.
            entries[:, 0] += np.add.reduce(0 * apart[:, :n].imag, 1)
        parts = entries.astype(self._output, copy=False).view(self._dtype)
        numbers = parts.take(self._order, 1)
        return numbers.reshape(self._problem.matrices, -1, self.width).swapaxes(0, 1)

    def _weights(self, baselines: Any, toward: Any) -> Any:
        """Return the factors of the terms' numbers, (product, width, direction).

        Baselines (channel, baseline, 3) are in wavelengths, directions are columns.
        """
        n, channels, directions = self._n, len(baselines), toward.shape[1]
        turns = baselines.reshape(-1, 3).dot(toward)
        turns = turns.reshape(channels, self._baselines, directions)
        z = np.empty((channels, self.groups * self.width, directions), self._dtype)
        z[:, :n] = 0.5
        sines = n + self._baselines
        cosines_and_sines(turns, z[:, n:sines], z[:, sines : n * n])
        if self.groups == 1:
            return z
        z[:, n * n :] = 0
        return z.reshape(channels * self.groups, self.width, directions)

    def _power(self, numbers: Any, z: Any) -> Any:
        """Return the power (matrix, direction); each covariance is a product of its own."""
        power = np.vecmat(numbers, z[:, None])
        if self.groups > 1:
            power = np.add.reduce(power.reshape(-1, self.groups, *power.shape[1:]), 1)
        return np.add.reduce(power, 0) if len(power) > 1 else power[0]


def is_of_baselines(problem: ImageProblem) -> bool:
    """Return whether `BaselineImage` takes about as long for one covariance as others, or less.

    The problem has at least one antenna and channel and an exact precision.
    """
    n = problem.antennas
    more = n * (n - 3) // 2 * problem.channels * problem.directions
    return n <= _BASELINE_ANTENNAS or more <= _MAX_MORE[problem.dtype]


def groups_of(n: int) -> int:
    """Return how many groups of terms n antennas have: as few as keep the bound of an image.

    The bound counts 4 antennas + channels + 7 roundings of sums
    (`workflow/accuracy/image_bounds.py`): one of each term of a group, one of each group.
    """
    return next(g for g in count(1) if -(-n * n // g) + g <= 4 * n + 8)
