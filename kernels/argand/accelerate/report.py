"""The report of `argand.accelerate`: a row for each form of product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class RoutedForm:
    """Products of one form: of one library, type and shapes.

    Attributes:
        library: torch or cupy.
        form: types and shapes, in words.
        calls: how many there were.
        argand_calls: how many of them argand computed; fewer where it ran out of memory later.
        by_argand: whether argand computes the next call.
        reason: why, or why not.
        library_seconds, argand_seconds: the time of one of several calls in a row, measured before
            the first; None where nothing was measured.
    """

    library: str
    form: str
    by_argand: bool
    reason: str
    library_seconds: float | None = None
    argand_seconds: float | None = None
    calls: int = 0
    argand_calls: int = 0


@dataclass
class Report:
    """The forms of a run in order; its text is a table of them."""

    accuracy: str
    forms: list[RoutedForm] = field(default_factory=list)

    @property
    def routed_calls(self) -> int:
        """Calls that argand computed."""
        return sum(row.argand_calls for row in self.forms)

    @property
    def saved_seconds(self) -> float:
        """Seconds that argand saved in those calls, by the measurement of each form."""
        return sum(
            row.argand_calls * (row.library_seconds - row.argand_seconds)
            for row in self.forms
            if row.library_seconds and row.argand_seconds
        )

    def __str__(self) -> str:
        """Return a line of all calls and a line of each form."""
        calls = sum(row.calls for row in self.forms)
        head = (
            f"argand computed {self.routed_calls} of {calls} complex products {self.accuracy}, "
            f"{1e3 * self.saved_seconds:.3g} ms less than the libraries"
        )
        return "\n".join([head, *self._lines()])

    def _lines(self) -> Iterator[str]:
        for row in self.forms:
            times = ""
            if row.library_seconds and row.argand_seconds:
                times = (
                    f", {1e6 * row.argand_seconds:.1f} us against "
                    f"{1e6 * row.library_seconds:.1f} us"
                )
            who = "argand" if row.by_argand else row.library
            yield f"  {row.calls} x {row.library} {row.form}: by {who}, {row.reason}{times}"
