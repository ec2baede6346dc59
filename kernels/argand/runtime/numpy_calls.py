"""Earlier calls on NumPy arrays: their checked problems, by the form of the arguments.

A check of the arguments takes longer than a small product. Beside a large product, which has
emptied the caches, it takes several percent of the time.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from argand.framework import framework_of

Key = tuple[Any, ...]
_Found = TypeVar("_Found")
MOST_CALLS = 4096
"""Most entries; then all are dropped, because a program of so many forms repeats few of them."""


def may_change(options: tuple[Any, ...]) -> bool:
    """Return whether an option is a number in memory, such as a tensor of torch.

    A call with it must not be kept: its hash stays when the number changes.
    """
    return any(
        may_change(x) if isinstance(x, tuple) else framework_of(x) is not None for x in options
    )


class NumpyCalls(Generic[_Found]):
    """The checked problems of one operation's calls, or what computes them."""

    def __init__(self) -> None:
        self.found: dict[Key, _Found] = {}

    def key(self, arrays: tuple[Any, ...], options: tuple[Any, ...]) -> Key | None:
        """Return what identifies calls of one form; None for calls that are never kept.

        ``arrays`` are the operands and last the result, None where one is missing; ``options`` are
        all other arguments.
        """
        # A float equals the integer, and 1 the truth value, whose call was kept.
        key: list[Any] = [options, *map(type, options)]
        for x in arrays:
            if type(x) is np.ndarray:
                key += x.dtype, x.shape
            elif x is None:
                key.append(None)
            else:
                return None
        if arrays[-1] is not None:
            key.append(arrays[-1].strides)  # those of a result that is refused are no kept form's
        return tuple(key)

    def known(self, key: Key | None) -> _Found | None:
        """Return what was kept of an earlier call of this form."""
        try:
            return None if key is None else self.found.get(key)
        except TypeError:  # an option that is given as a list
            return None

    def keep(self, key: Key | None, found: _Found) -> None:
        """Keep what was found of a call that took its operands as they were given."""
        if key is None or may_change(key):
            return
        if len(self.found) >= MOST_CALLS:
            self.found.clear()
        try:
            self.found[key] = found
        except TypeError:  # an option that is given as a list
            return
