"""The protocol of a reader of a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from workflow.config.coordinate import SAMPLE_RATES_HZ
from workflow.config.file_input import Flagged
from workflow.data import Array, Product
from workflow.files.input_error import InputError


def check_sample_rate(path: Path, hertz: float) -> None:
    """Raise InputError where a file tells of a rate that a study may not name either."""
    least, most = SAMPLE_RATES_HZ
    if not least <= hertz <= most:
        raise InputError(
            f"input.file: {path} must tell of {least:g} to {most:g} samples a second, got {hertz:g}"
        )


class Reader(ABC):
    """The arrays of one file; nothing of it is read before it is asked for.

    ``flagged`` is the config's, and what is done with values that a file says are bad or missing;
    so is ``zero_level``, the number that stands for 0 where they are unsigned.
    ``checked`` says that a study is checked, which must not take memory for each sample. ``bad``
    counts those of the ``values`` that were read that a file says are bad or missing.
    """

    names: ClassVar[tuple[str, ...]]
    """The names of such a file's arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: dict[str, str] = {}
        self.flagged: Flagged = "refuse"
        self.zero_level: float | None = None
        self.checked = False
        self.bad, self.values = 0, 0

    @abstractmethod
    def outline(self, name: str) -> Product:
        """Return an array's axes, shape, type, coordinates and unit, without its values (`blank`).

        An axis on which the file says something that cannot be has no coordinate, and what is wrong
        is put into ``faults`` by the axis: an error, unless the study says their values. Raises
        InputError where the file is not there, damaged, or not of the format.
        """

    @abstractmethod
    def read(self, name: str, part: Sequence[slice]) -> Array:
        """Return a range of each axis, of steps of 1; errors as in `outline`."""

    def header(self) -> Mapping[str, Any]:
        """Return the header beside the arrays, such as the names of telescope and source.

        Values that are neither text nor numbers are passed over. Errors as in `outline`.
        """
        return {}

    @property
    def has_flags(self) -> bool:
        """Whether the file says which of its values are bad (`flags`)."""
        return False

    def made_zero(self) -> str:
        """Return which of the values that were read the config has made 0; "" where none are."""
        if self.flagged != "zero" or not self.bad:
            return ""
        return f"{self.bad} of {self.values} values, which are flagged or missing"

    def lost(self) -> str:
        """Return how many samples a file says are lost, not which ones; "" where none are."""
        return ""

    def flags(self, name: str, part: Sequence[slice]) -> Array:
        """Return whether each value of a range of each axis is bad, as the file says."""
        raise NotImplementedError(name)

    def known(self, name: object, key: str) -> str:
        """Return the name itself; raises InputError with what there is for another."""
        if name not in self.names:
            raise InputError(f"{key}: must be one of {list(self.names)} of the file, got {name!r}")
        return str(name)
