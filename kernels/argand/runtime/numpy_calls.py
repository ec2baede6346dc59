"""The problems of an operation's earlier calls on NumPy arrays, by the form of their arguments.

To check the arguments takes longer than a small product, and beside a large one, which has emptied
the caches, several percent of its time.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

Key = tuple[Any, ...]
_Problem = TypeVar("_Problem")
MOST_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""


class NumpyCalls(Generic[_Problem]):
    """The problems of one operation's calls, whose arguments were found right."""

    def __init__(self) -> None:
        self._problems: dict[Key, _Problem] = {}

    def key(self, arrays: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
        """Return what identifies calls of one form; None for calls that are never kept.

        ``arrays`` are the operands and last the result, None where one is missing; ``options`` are
        all other arguments.
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

    def known(self, key: Key | None) -> _Problem | None:
        """Return the problem of an earlier call of this form."""
        try:
            return None if key is None else self._problems.get(key)
        except TypeError:  # an option that is given as a list
            return None

    def keep(self, key: Key | None, problem: _Problem) -> None:
        """Keep the problem of a call that took its operands as they were given."""
        if key is None:
            return
        if len(self._problems) >= MOST_CALLS:
            self._problems.clear()
        try:
            self._problems[key] = problem
        except TypeError:  # an option that is given as a list
            return
