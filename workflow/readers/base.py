"""The protocol of a reader of a format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from workflow.data import Array, Product
from workflow.storage.input_operand import InputError


class Reader(ABC):
    """The arrays of one file; nothing of it is read before it is asked for."""

    names: ClassVar[tuple[str, ...]]
    """The names of such a file's arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: dict[str, str] = {}

    @abstractmethod
    def outline(self, name: str) -> Product:
        """Return an array's axes, shape, type, coordinates and unit, without its values (`blank`).

        Axes of which the file says something that cannot be are without coordinates, and what is
        wrong is put into ``faults`` by the axis: an error, unless the study says their values.
        Raises InputError where the file is not there, damaged, or not of the format.
        """

    @abstractmethod
    def read(self, name: str, part: Sequence[slice]) -> Array:
        """Return a range of each axis, of steps of 1; errors as in `outline`."""

    def known(self, name: object, key: str) -> str:
        """Return the name itself; raises InputError with what there is for another."""
        if name not in self.names:
            raise InputError(f"{key}: must be one of {list(self.names)} of the file, got {name!r}")
        return str(name)


@dataclass(frozen=True)
class FileArray:
    """One array of a reader, of which a box is read at a time."""

    reader: Reader
    name: str

    def __getitem__(self, spans: tuple[slice, ...]) -> Array:
        """Return the entries of a range of each axis."""
        found = self.reader.read(self.name, [slice(one.start, one.stop) for one in spans])
        return found[tuple(slice(None, None, one.step) for one in spans)]
