"""Images of few antennas on the CPU at fp64 and fp32: a weight of each baseline, for all matrices.

With H = (R + R^H) / 2, w_a = exp(i p_a) and baselines a > b the power is

    w^H R w = sum H_aa + sum 2 Re H_ab cos(p_a - p_b) + 2 Im H_ab sin(p_a - p_b),

one real product of antennas^2 multiplications, whose cosines and sines all matrices share.
`argand.image.few_antennas` takes four times as many multiplications and two more steps over their
results, and fewer weights: of antennas, where these are of antennas (antennas - 1) / 2 baselines.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.blocks import is_small, require_hermitian
from argand.image.cosines import cosines_and_sines
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem
from argand.runtime.quiet import quietly
from argand.runtime.threads import ONE_CORE, ONE_CORE_DOT, on_all_cores

_WEIGHT, _STEP = 320, 12
"""Time of a cosine and sine, and of a step over a number, in multiplications of a product."""
_BLOCK_VALUES = 1 << 16
"""Cosines, or powers, that are made at a time: they stay in a core's cache."""
_LEAST_STEP = 64
"""Directions at a time that all channels have together; of fewer NumPy's steps are too short."""
_SHARED_TIME = 1 << 24
"""Multiplications, or as long, from which threads pay: some 500 us on one core."""


class BaselineImage:
    """The image of a problem of at least one antenna and channel, at an exact precision.

    Terms are the sum of the diagonal, then the baselines, then as many zeros as make groups of
    them equally long. A product sums the terms of a group.

    Attributes:
        groups, width: how many groups there are, and the terms of each.
    """

    def __init__(self, problem: ImageProblem) -> None:
        self._problem, n = problem, problem.antennas
        terms = _terms(n)
        self.groups = groups = _groups(n)
        self.width = -(-terms // groups)
        self._products = problem.channels * groups
        a, b = np.zeros((2, groups * self.width), np.intp)
        a[1:terms], b[1:terms] = np.tril_indices(n, -1)
        self._antennas, self._places, self._terms = (a, b), (a * n + b, b * n + a), terms
        self._is_padded = terms < len(a)
        self._shape, self._real = (problem.matrices, problem.channels, n * n), problem.dtype
        self._numbers_shape = problem.matrices, self._products, 2 * self.width
        self._found_shape = problem.matrices, problem.directions
        self._result_shape = problem.shape
        self._is_few = math.prod(self._shape) <= ONE_CORE_DOT
        matrices = max(1, problem.matrices)
        values = groups * max(self.width, matrices)
        self._band = min(problem.channels, max(1, _BLOCK_VALUES // (_LEAST_STEP * values)))
        columns = _BLOCK_VALUES // (self._band * values)
        each = problem.directions
        self._shared = _time(problem) >= _SHARED_TIME and available_cores() > 1
        if self._shared:
            each = -(-each // available_cores())
        self._step = max(1, min(each, columns))
        # BLAS multiplies so few columns on one core; several would wait at each product.
        one_core = ONE_CORE // (2 * self.width * matrices) if available_cores() > 1 else self._step
        self._columns = max(1, min(self._step, one_core))

    def __call__(self, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
        """Return the power; arguments as of `argand.image.blocks.image_in_blocks`.

        The origin of the positions is any.
        """
        problem = self._problem
        found = np.empty(self._found_shape, self._real)
        quietly(self._compute, r, x, f * (problem.sign / SPEED_OF_LIGHT), s, found)
        found = found.reshape(self._result_shape)
        if out is None:
            return found
        out[...] = found
        return out

    def _compute(self, r: Any, x: Any, turns: Any, s: Any, found: Any) -> None:
        """Write the power (matrix, direction); ``turns`` are those of a metre."""
        numbers = self._numbers(r)
        baselines = x.take(self._antennas[0], 0) - x.take(self._antennas[1], 0)

        def work(start: int) -> None:
            some = slice(start, start + self._step)
            delays = baselines @ s[some].T
            for first in range(0, len(turns), self._band):
                band = slice(first, first + self._band)
                each = slice(first * self.groups, band.stop * self.groups)
                phases = turns[band, None, None] * delays
                self._add_power(numbers[each], phases, found[:, some], first > 0)

        starts = range(0, self._problem.directions, self._step)
        if self._shared:
            on_all_cores(partial(quietly, work), starts)
        else:
            for start in starts:
                work(start)

    def _numbers(self, r: Any) -> Any:
        """Return the numbers of 2 H, of the diagonal H's, as (product, matrix, 2 width)."""
        flat = r.reshape(self._shape).astype(self._problem.precision.output, copy=False)
        twice, lower = flat.take(self._places[0], 2), flat.take(self._places[1], 2).conj()
        diagonal = flat[..., :: self._problem.antennas + 1]
        if not self._is_few or not self._is_hermitian(twice - lower, diagonal):
            require_hermitian(r, np)
        twice += lower
        # The sine beside the imaginary part is 0: only what is not finite remains of it.
        np.add.reduce(diagonal, 2, out=twice[..., 0])
        if self._is_padded:
            twice[..., self._terms :] = 0
        numbers = twice.view(self._real).reshape(self._numbers_shape)
        return numbers.swapaxes(0, 1)

    def _is_hermitian(self, apart: Any, diagonal: Any) -> bool:
        """Return whether covariances surely are: by the differences of triangles, and diagonals."""
        apart[..., 0] = np.add.reduce(np.abs(diagonal.imag), 2)  # half of what they differ by
        return is_small(apart, diagonal[..., 0])

    def _add_power(self, numbers: Any, turns: Any, found: Any, added: bool) -> None:
        """Write or add the power (matrix, direction) of phases (channel, term, direction)."""
        directions = turns.shape[-1]
        z = np.empty((*turns.shape[:2], 2, directions), found.dtype)
        cosines_and_sines(turns, z[:, :, 0], z[:, :, 1])
        z = z.reshape(len(numbers), -1, directions)
        for first in range(0, directions, self._columns):
            some = slice(first, first + self._columns)
            sums = numbers @ z[..., some]
            if self.groups > 1:
                sums = sums.reshape(len(turns), -1, *sums.shape[1:])
                sums = np.add.reduce(sums, 1)
            if added:
                found[:, some] += np.add.reduce(sums, 0)
            else:
                np.add.reduce(sums, 0, out=found[:, some])


def is_of_baselines(problem: ImageProblem) -> bool:
    """Return whether `BaselineImage` takes less time than `few_antennas_image`."""
    n, matrices = problem.antennas, max(1, problem.matrices)
    others = _WEIGHT * n + matrices * (4 * n * n + 4 * _STEP * n)
    return _time_of_direction(problem) <= others


def _time(problem: ImageProblem) -> int:
    return problem.directions * problem.channels * _time_of_direction(problem)


def _time_of_direction(problem: ImageProblem) -> int:
    """Return the time of a direction and a channel, in multiplications of a product."""
    terms, groups = _terms(problem.antennas), _groups(problem.antennas)
    return _WEIGHT * terms + max(1, problem.matrices) * (2 * terms + _STEP * groups)


def _terms(n: int) -> int:
    return 1 + n * (n - 1) // 2


def _groups(n: int) -> int:
    """Return how many groups of terms there are: as few as keep the bound of an image.

    It counts 4 antennas + channels + 7 roundings of sums (`workflow/accuracy/image_bounds.py`). The
    diagonal takes antennas - 1 of them, a group two a term, the groups' sum one a group.
    """
    terms = _terms(n)
    return next(g for g in count(1) if 2 * -(-terms // g) + g <= 3 * n + 8)
