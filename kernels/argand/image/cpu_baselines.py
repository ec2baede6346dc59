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
from argand.image.hermitian_check import is_small, require_hermitian, transposed_indices
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem, as_complex
from argand.runtime.quiet import quietly
from argand.runtime.threads import ONE_CORE_DOT, ONE_CORE_VECTOR, on_all_cores

_BASELINE_ANTENNAS = 4
"""Antennas up to which `BaselineImage` is chosen for any number of directions."""
_MOST_MORE = {"float32": 1 << 12, "float64": 1 << 11}
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

    Terms are the sum of the diagonal, then those that pad the groups to equal length, then the
    baselines; each has a cosine and a sine. A product sums the terms of a group.

    Attributes:
        groups, width: number of groups, and of the terms of each.
    """

    def __init__(self, problem: ImageProblem) -> None:
        self._problem, n = problem, problem.antennas
        a, b = np.tril_indices(n, -1)
        self._differences = np.eye(n)[a] - np.eye(n)[b]
        self.groups = groups_of(n)
        self.width = -(-(1 + len(a)) // self.groups)
        terms, self._complex = self.groups * self.width, problem.precision.output
        self._first = first = terms - len(a)
        self._upper = np.concatenate([np.zeros(first, np.intp), b * n + a])
        # Padding has constants of 0, so that its numbers do not count.
        self._constants = np.zeros((first, 2, 1), problem.dtype)
        self._constants[0, 0] = 1
        self._shape = problem.matrices, problem.channels, n * n
        # BLAS multiplies so few columns by a row on one core; several would wait at each product.
        columns = ONE_CORE_VECTOR // (2 * self.width)
        self._step = min(columns - columns % _LANES or columns, max(1, problem.directions))
        self._band = max(1, _BLOCK_VALUES // (2 * terms * self._step))
        products = self.groups * min(self._band, problem.channels)
        self._together = max(1, _BLOCK_VALUES // (products * self._step))
        each = _WEIGHT * terms + problem.matrices * (2 * terms + _STEP)
        self._shared = problem.directions * problem.channels * each >= _SHARED_TIME
        self._is_one_block = (
            not self._shared and self._step == problem.directions
            and self._band >= problem.channels and self._together >= problem.matrices
        )  # fmt: skip

    def __call__(self, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
        """Return the power; arguments as of `argand.image.blocks.image_in_blocks`.

        The origin of the positions is arbitrary. Raises ValueError for a matrix that is not
        Hermitian.
        """
        problem = self._problem
        found = quietly(self._compute, r, x, f * (problem.sign / SPEED_OF_LIGHT), s)
        found = found.reshape(problem.shape)
        if out is None:
            return found
        out[...] = found
        return out

    def _compute(self, r: Any, x: Any, turns: Any, s: Any) -> Any:
        """Return the power (matrix, direction); ``turns`` (channel,) are in turns per metre."""
        numbers = self._numbers(r)
        baselines = turns[:, None, None] * self._differences.dot(x)
        if self._is_one_block:
            return self._power(numbers, self._weights(baselines @ s.T))
        step, together, band = self._step, self._together, self._band
        found = np.empty((self._problem.matrices, self._problem.directions), self._problem.dtype)

        def work(start: int) -> None:
            some = slice(start, start + step)
            toward = s[some].T
            for first in range(0, len(baselines), band):
                z = self._weights(baselines[first : first + band] @ toward)
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
        """Return the sum of H_aa, and 2 H_ab of baselines, as (product, matrix, 1, 2 width)."""
        flat = r.reshape(self._shape)
        if r.dtype.kind != "c":
            flat = as_complex(flat)
        twice = np.conjugate(flat)
        transposed = flat.take(transposed_indices(self._problem.antennas), 2)
        if not (0 < r.size <= ONE_CORE_DOT and is_small(twice - transposed, flat[..., 0])):
            require_hermitian(r, np)
        twice += transposed
        numbers = twice.take(self._upper, 2).astype(self._complex, copy=False)
        # The sine beside the imaginary part is 0: only what is not finite remains of it.
        np.add.reduce(flat[..., :: self._problem.antennas + 1], 2, out=numbers[..., 0])
        shape = len(flat), -1, 1, 2 * self.width
        return numbers.view(self._problem.dtype).reshape(shape).swapaxes(0, 1)

    def _weights(self, turns: Any) -> Any:
        """Return cosines and sines (product, 2 width, direction) of baselines' phases in turns."""
        channels, _, directions = turns.shape
        terms = self.groups * self.width
        z = np.empty((channels, terms, 2, directions), self._problem.dtype)
        first = self._first
        z[:, :first] = self._constants
        cosines_and_sines(turns, z[:, first:, 0], z[:, first:, 1])
        return z.reshape(channels * self.groups, 2 * self.width, directions)

    def _power(self, numbers: Any, z: Any) -> Any:
        """Return the power (matrix, direction); each covariance is a product of its own."""
        power = np.matmul(numbers, z[:, None])[:, :, 0]
        if self.groups > 1:
            power = np.add.reduce(power.reshape(-1, self.groups, *power.shape[1:]), 1)
        return np.add.reduce(power, 0) if len(power) > 1 else power[0]


def is_of_baselines(problem: ImageProblem) -> bool:
    """Return whether `BaselineImage` takes about as long for one covariance as others, or less.

    The problem has at least one antenna and channel and an exact precision.
    """
    n = problem.antennas
    more = n * (n - 3) // 2 * problem.channels * problem.directions
    return n <= _BASELINE_ANTENNAS or more <= _MOST_MORE[problem.dtype]


def groups_of(n: int) -> int:
    """Return how many groups of terms n antennas have: as few as keep the bound of an image.

    The bound counts 4 antennas + channels + 7 roundings of sums
    (`workflow/accuracy/image_bounds.py`): antennas - 1 of the diagonal's sum, two of each term of a
    group, one of each group.
    """
    terms = 1 + n * (n - 1) // 2
    return next(g for g in count(1) if 2 * -(-terms // g) + g <= 3 * n + 8)
