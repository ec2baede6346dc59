"""Names of the kernels that products ran on within a context, for records.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

watching: list[list[str]] = []
"""The lists of the open contexts; launches note their names where there is one."""


@contextmanager
def launched() -> Iterator[list[str]]:
    """Open a context with the list of the launches within it, from any thread, each name once.

    The name of a product on tensor cores is its family of kernels, its tile and stages, where each
    operand is read from, and how k was split. cuBLAS and the CPU leave no name. A call from the
    call cache has the name of the first such call.

    Example:
        >>> with argand.launched() as names:
        ...     _ = argand.gemm(np.eye(2), np.eye(2))
        >>> names  # a CPU launches no kernels
        []
    """
    names: list[str] = []
    watching.append(names)
    try:
        yield names
    finally:
        watching[:] = [other for other in watching if other is not names]


def note(name: str) -> None:
    """Add a launch's name to every open list."""
    for names in watching:
        if name not in names:
            names.append(name)
