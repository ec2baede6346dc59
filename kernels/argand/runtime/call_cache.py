"""Launches by the form of a call: a dictionary that cannot grow without end."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 4096
"""Entries, after which all are forgotten: a program that calls so many forms repeats few."""


class Remembered(dict[K, V]):
    """A dictionary of at most MOST entries."""

    def __setitem__(self, key: K, value: V) -> None:
        """Keep an entry; forget the others first where there are too many."""
        if len(self) >= MOST and key not in self:
            self.clear()
        super().__setitem__(key, value)
