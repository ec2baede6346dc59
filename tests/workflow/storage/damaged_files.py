"""Files with a bit flipped anywhere, or cut anywhere: each is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workflow.storage.datasets import DataError


def assert_refused(path: Path, read: Callable[[Path], object], *, flips: int, cuts: int) -> None:
    """Flip a bit of every ``flips``-th byte, and cut the file at every ``cuts``-th."""
    good, refused = path.read_bytes(), rf"{path.stem}\{path.suffix}"
    for position in range(0, len(good), flips):
        damaged = bytearray(good)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=refused):
            read(path)
    for length in range(0, len(good), cuts):
        path.write_bytes(good[:length])
        with pytest.raises(DataError, match=refused):
            read(path)
