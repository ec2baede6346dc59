"""Forcing a plan: what tests, tuning and measurements put in place of the choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Forced(Generic[T]):
    """What the innermost context forces; ``active`` says whether there is one, T may be None."""

    def __init__(self) -> None:
        #: Whether anything is forced.
        self.active = False
        #: What is; None where nothing is.
        self.value: T | None = None

    @contextmanager
    def to(self, value: T) -> Iterator[None]:
        """A context in which `value` is this one."""
        before = self.active, self.value
        self.active, self.value = True, value
        try:
            yield
        finally:
            self.active, self.value = before
