"""Memory of calls on the CPU that take microseconds, kept from call to call by their form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Memory = TypeVar("_Memory")
MAX_BYTES = 1 << 24
"""Bytes that are kept for all forms and threads."""
_FORM_BYTES = 1 << 13
"""Bytes that are counted for each memory beside those that its form gives: its views and Python's
other objects, which take more than the numbers where a form has few."""


class KeptMemory(list[_Memory], Generic[_Memory]):
    """Memory of one form that no call uses, made by a function and of about ``nbytes``.

    A call takes it out and puts it back behind its last step, so that one of another thread, or of
    a signal's handler, has its own::

        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()

    A method that does both would take a call of few numbers some percent longer.
    """

    def __init__(self, make: Callable[[], _Memory], nbytes: int) -> None:
        self.make, self.nbytes = make, nbytes + _FORM_BYTES

    def new(self) -> _Memory:
        """Return new memory; where much is kept already, that of all forms is dropped."""
        if sum(form.nbytes for form in _FORMS) + self.nbytes > MAX_BYTES:
            for form in _FORMS:
                form.clear()
            _FORMS.clear()
        _FORMS.append(self)
        return self.make()


_FORMS: list[KeptMemory[Any]] = []
