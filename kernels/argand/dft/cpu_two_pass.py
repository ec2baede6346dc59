"""Long transforms on the CPU, in fp32: the model of ``cuda/dft/two_pass.cuh``.

It has the same radices and tables, but no fused multiply-adds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from argand.dft.cpu import in_blocks
from argand.dft.cpu_butterfly import along
from argand.dft.two_pass import TwoPassPlan, two_pass_tables
from argand.rounding import Array

if TYPE_CHECKING:
    from argand.dft.problem import DftProblem


def two_pass_dft(problem: DftProblem, x: Array, plan: TwoPassPlan) -> Array:
    """Return the transforms of the rows of x, (rows, N) of complex64, by columns and lines."""
    return in_blocks(x, plan.length, lambda rows: _rows(problem, rows, plan))


@lru_cache(maxsize=4)
def _twiddles(plan: TwoPassPlan) -> tuple[Array, Array, Array]:
    """Return the twiddles within columns, before the lines and within lines, by their axes."""
    (a, b), (c, d) = plan.columns, plan.lines
    words = two_pass_tables(plan)["twiddles"]
    inner, bases, steps, lines = np.split(words, np.cumsum([a * b, a * c * d, b * c * d]))
    between = bases.reshape(a, 1, c, d) * steps.reshape(1, b, c, d)
    return inner.reshape(a, b, 1, 1), between, lines.reshape(c, d)


def _rows(problem: DftProblem, x: Array, plan: TwoPassPlan) -> Array:
    inner, between, lines = _twiddles(plan)
    given = np.conj(x) if problem.inverse else x
    work = given.reshape(len(x), *plan.columns, *plan.lines)
    work = along(along(work, 1) * inner, 2) * between
    work = along(along(work, 3) * lines, 4)
    # Numbers of a later stage are the higher digits of a frequency.
    found = work.transpose(0, 4, 3, 2, 1).reshape(len(x), plan.length) * np.float32(problem.factor)
    return np.conj(found) if problem.inverse else found
