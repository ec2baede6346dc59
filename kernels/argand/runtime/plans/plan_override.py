"""A plan in place of the chosen one: for tests, tuning and measurements."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class PlanOverride(threading.local, Generic[T]):
    """One operation's plan override. T may be None, so ``active`` says whether there is one.

    Each thread has its own: what one tunes does not become the plan of the others' calls.
    """

    def __init__(self) -> None:
        #: `active` and `value` together, which calls read at once: each read takes time.
        self.both: tuple[bool, T | None] = False, None
        #: Whether a context is open.
        self.active = False
        #: The plan of the innermost context; None where none is open.
        self.value: T | None = None

    @contextmanager
    def use(self, value: T) -> Iterator[None]:
        """Open a context in which calls take this plan."""
        before = self.both
        self.active, self.value = self.both = True, value
        try:
            yield
        finally:
            self.active, self.value = self.both = before
