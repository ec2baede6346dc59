"""An array of a reader, from which a study's selection is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workflow.data import Array
from workflow.files.input_error import InputError
from workflow.inputs.selections import Picked
from workflow.readers.base import Reader

Box = tuple[slice, ...]


@dataclass(frozen=True)
class FileArray:
    """One array of a reader, read box by box."""

    reader: Reader
    name: str

    def __getitem__(self, spans: Box) -> Array:
        """Return the entries of a range of each axis."""
        return _stepped(self.reader.read, self.name, spans)

    def taken(self, picked: Picked) -> Array:
        """Return the selected values; flagged ones are zero unless they are kept.

        Raises InputError where flagged ones are not zero and the config does not say so.
        """
        data = picked.read(self)
        if self.reader.flagged == "keep" or not self.reader.has_flags:
            return data
        bad = picked.read(_Flags(self.reader, self.name))
        self.reader.values += bad.size
        self.reader.bad += int(np.count_nonzero(bad))
        lost = int(np.count_nonzero(bad & (data != 0)))
        if lost and self.reader.flagged == "refuse":
            raise InputError(
                f"input.file: {self.reader.path} flags {lost} of the first {data.size} values "
                f"of {self.name} that are selected, which are not zero; `flagged: zero` in the "
                "input leaves them out of sums, `flagged: keep` takes them as they are"
            )
        return np.where(bad, data.dtype.type(0), data)


@dataclass(frozen=True)
class _Flags:
    """The flags of an array of a reader, of its shape."""

    reader: Reader
    name: str

    def __getitem__(self, spans: Box) -> Array:
        return _stepped(self.reader.flags, self.name, spans)


def _stepped(read: Callable[[str, Sequence[slice]], Array], name: str, spans: Box) -> Array:
    """Return ranges of any steps by a function that reads ranges of steps of 1."""
    found = read(name, [slice(one.start, one.stop) for one in spans])
    return found[tuple(slice(None, None, one.step) for one in spans)]
