"""Which kernels the products of a stretch of code ran on, by name: what records say.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

watching: list[list[str]] = []
"""The lists of the contexts that are open. Each launch looks whether there are any."""


@contextmanager
def launched() -> Iterator[list[str]]:
    """A context with the list of what launches within it, from any thread, each name once.

    Of a product on a GPU's tensor cores that is the family of kernels, its tile and stages, how
    each operand came to it and what was cut along k; cuBLAS and the CPU leave no name. A call whose
    form was seen before gives the same name as the first.
    """
    names: list[str] = []
    watching.append(names)
    try:
        yield names
    finally:
        watching[:] = [other for other in watching if other is not names]


def note(name: str) -> None:
    """Enter a launch in every list that is open."""
    for names in watching:
        if name not in names:
            names.append(name)
