"""The error of a user's file, or of a study's section about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class InputError(ValueError):
    """The user's file is not there, or does not hold what the config says.

    ``mistakes`` are what was found, in its text one after another.
    """

    def __init__(self, *mistakes: str) -> None:
        self.mistakes = list(dict.fromkeys(mistakes))
        super().__init__("; ".join(self.mistakes))


class Mistakes:
    """The InputErrors of several parts of an input, to be raised together."""

    def __init__(self) -> None:
        self._found: list[str] = []

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the InputError that ends a block early."""
        try:
            yield
        except InputError as error:
            self._found += error.mistakes

    def raise_all(self) -> None:
        """Raise InputError with all of them, where there are any."""
        if self._found:
            raise InputError(*self._found)
