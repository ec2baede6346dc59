"""Images of up to four antennas on the CPU at fp64 and fp32: a weight of each baseline.

With H = (R + R^H) / 2, w_a = exp(i p_a) and baselines a > b the power is

    w^H R w = sum H_aa + sum 2 Re H_ab cos(p_a - p_b) + 2 Im H_ab sin(p_a - p_b),

one real product of antennas^2 multiplications, whose cosines and sines all covariances share. Of
more antennas there are more baselines than weights are worth: `argand.image.few_antennas`. Neither
the choice nor the order of a sum depends on how many covariances there are, so an image is the same
bits alone and among others.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.blocks import across, as_complex, is_small, require_hermitian
from argand.image.cosines import cosines_and_sines
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem
from argand.runtime.quiet import quietly
from argand.runtime.threads import ONE_CORE_DOT, ONE_CORE_VECTOR, on_all_cores

MOST_ANTENNAS = 4
"""Antennas up to which one covariance, too, takes no more time than by antennas' weights."""
_BLOCK_VALUES = 1 << 16
"""Cosines and sines, or powers, that are made at a time: they stay in a core's cache."""
_LANES = 64
"""Directions at a time are a multiple of this, where there are more."""
_WEIGHT, _STEP = 320, 12
"""Time of a cosine and sine, and of a step over a power, in multiplications of a product."""
_SHARED_TIME = 1 << 24
"""Multiplications, or as long, from which threads pay: some 500 us on one core."""


class BaselineImage:
    """The image of a problem of at least one antenna and channel, at an exact precision.

    Terms are the sum of the diagonal, then the baselines; each has a cosine and a sine.
    """

    def __init__(self, problem: ImageProblem) -> None:
        self._problem, n = problem, problem.antennas
        a, b = np.tril_indices(n, -1)
        self._differences = np.eye(n)[a] - np.eye(n)[b]
        self._upper = np.append(0, b * n + a)
        self._complex = problem.precision.output
        terms = 1 + len(a)
        self._shape = problem.matrices, problem.channels, n * n
        # BLAS multiplies so few columns by a row on one core; several would wait at each product.
        columns = ONE_CORE_VECTOR // (2 * terms)
        self._step = min(columns - columns % _LANES, max(1, problem.directions))
        self._band = max(1, _BLOCK_VALUES // (2 * terms * self._step))
        self._together = max(1, _BLOCK_VALUES // (min(self._band, problem.channels) * self._step))
        each = _WEIGHT * terms + problem.matrices * (2 * terms + _STEP)
        self._shared = problem.directions * problem.channels * each >= _SHARED_TIME

    def __call__(self, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
        """Return the power; arguments as of `argand.image.blocks.image_in_blocks`.

        The origin of the positions is any. Raises ValueError for a covariance that is none.
        """
        problem = self._problem
        found = np.empty((problem.matrices, problem.directions), problem.dtype)
        quietly(self._compute, r, x, f * (problem.sign / SPEED_OF_LIGHT), s, found)
        found = found.reshape(problem.shape)
        if out is None:
            return found
        out[...] = found
        return out

    def _compute(self, r: Any, x: Any, turns: Any, s: Any, found: Any) -> None:
        """Write the power (matrix, direction); ``turns`` are those of a metre."""
        numbers = self._numbers(r)
        baselines = turns[:, None, None] * self._differences.dot(x)
        step, together, band = self._step, self._together, self._band

        def work(start: int) -> None:
            some = slice(start, start + step)
            toward = s[some].T
            for first in range(0, len(baselines), band):
                each = slice(first, first + band)
                z = self._weights(baselines[each] @ toward)
                for one in range(0, len(found), together):
                    chunk = slice(one, one + together)
                    _add_power(numbers[each, chunk], z, found[chunk, some], first > 0)

        starts = range(0, len(s), step)
        if self._shared and available_cores() > 1:
            on_all_cores(partial(quietly, work), starts)
        else:
            for start in starts:
                work(start)

    def _numbers(self, r: Any) -> Any:
        """Return the sum of H_aa, and 2 H_ab of baselines, as (channel, matrix, 1, 2 terms)."""
        flat = r.reshape(self._shape)
        if r.dtype.kind != "c":
            flat = as_complex(flat)
        twice = np.conjugate(flat)
        transposed = flat.take(across(self._problem.antennas), 2)
        if not (0 < r.size <= ONE_CORE_DOT and is_small(twice - transposed, flat[..., 0])):
            require_hermitian(r, np)
        twice += transposed
        numbers = twice.take(self._upper, 2).astype(self._complex, copy=False)
        # The sine beside the imaginary part is 0: only what is not finite remains of it.
        np.add.reduce(flat[..., :: self._problem.antennas + 1], 2, out=numbers[..., 0])
        return numbers.view(self._problem.dtype)[:, :, None].swapaxes(0, 1)

    def _weights(self, turns: Any) -> Any:
        """Return cosines and sines (channel, 2 terms, direction) of baselines' phases in turns."""
        channels, baselines, directions = turns.shape
        z = np.empty((channels, 1 + baselines, 2, directions), self._problem.dtype)
        z[:, 0, 0], z[:, 0, 1] = 1, 0
        cosines_and_sines(turns, z[:, 1:, 0], z[:, 1:, 1])
        return z.reshape(channels, -1, directions)


def _add_power(numbers: Any, z: Any, found: Any, added: bool) -> None:
    """Write or add the power (matrix, direction); each covariance is a product of its own."""
    power = np.add.reduce(np.matmul(numbers, z[:, None])[:, :, 0], 0)
    if added:
        power += found
    found[...] = power
