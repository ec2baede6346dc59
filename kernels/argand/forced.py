"""Forcing a plan: what tests, tuning and measurements put in place of the choice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Forced(Generic[T]):
    """What the innermost context forces; ``active`` says whether there is one, T may be None."""

    def __init__(self) -> None:
        self._values: list[T] = []
        #: What is forced; None where nothing is.
        self.value: T | None = None

    @contextmanager
    def to(self, value: T) -> Iterator[None]:
        """A context in which `value` is this one."""
        self._values.append(value)
        self.value = value
        try:
            yield
        finally:
            self._values.pop()
            self.value = self._values[-1] if self._values else None

    @property
    def active(self) -> bool:
        """Whether anything is forced."""
        return bool(self._values)
