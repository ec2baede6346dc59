"""The bindings of CUDA's driver API, which are imported when they are first used.

That takes 40 ms. A first call does so beside the compiler, which works in a thread of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def driver_bindings() -> Any:
    """Return ``cuda.bindings.driver``, by a call because an import takes over a microsecond."""
    from cuda.bindings import driver

    return driver


def checked(answer: tuple[Any, ...]) -> Any:
    """Return the value in a driver call's answer. Raises CUDADriverError where it is an error."""
    if answer[0]:
        import cupy

        raise cupy.cuda.driver.CUDADriverError(int(answer[0]))
    return answer[1] if len(answer) > 1 else None
