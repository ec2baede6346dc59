"""The problems of earlier products of NumPy arrays, by the form of their arguments.

To check the arguments takes longer than a small product, and beside a large one, which has emptied
the caches, several percent of its time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from argand.gemm.problem import GemmProblem

Key = tuple[Any, ...]
MOST_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""
_PROBLEMS: dict[Key, GemmProblem] = {}


def key(arrays: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
    """Return what identifies calls of one form; None for calls that are never kept.

    ``arrays`` are the operands and last the result, None where one is missing; ``options`` are all
    other arguments.
    """
    forms: list[Any] = []
    for x in arrays:
        if x is None:
            forms.append(None)
        elif type(x) is np.ndarray:
            forms.append((x.dtype, x.shape))
        else:
            return None
    return (*forms, options)


def known(key: Key | None) -> GemmProblem | None:
    """Return the problem of an earlier call of this form, whose arguments were found right."""
    try:
        return None if key is None else _PROBLEMS.get(key)
    except TypeError:  # an option that is given as a list
        return None


def keep(key: Key | None, problem: GemmProblem) -> None:
    """Keep the problem of a call that multiplied its operands as they were given."""
    if key is None:
        return
    if len(_PROBLEMS) >= MOST_CALLS:
        _PROBLEMS.clear()
    try:
        _PROBLEMS[key] = problem
    except TypeError:  # an option that is given as a list
        return
