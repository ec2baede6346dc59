"""The function that a call of XLA's runs, with the call cache that keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Body:
    """A call's function and the call cache that keeps it.

    Args:
        make: writes the result of a call on its operands: arrays of NumPy or CuPy over XLA's
            buffers.
        calls: returns the call cache that keeps the call on a GPU, where one does.
    """

    def __init__(
        self, make: Callable[[list[Any], Any], None], calls: Callable[[], Any] | None = None
    ) -> None:
        self.make, self.calls = make, calls
