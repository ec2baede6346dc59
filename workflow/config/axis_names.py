"""Names that a study gives to axes: they become names in HDF5 and netCDF files."""

from __future__ import annotations

import re
from collections.abc import Iterable

PAIR = "complex"
"""The axis of a dataset that holds real and imaginary part."""
SYNONYMS = {
    "channel": "frequency",
    "integration": "time",
    "input": "antenna",
    "conjugated_input": "column",
}
"""Other names of an operand's axis, and its own: the last three belong to visibilities."""
WORDS = {
    "freq": "frequency", "freqs": "frequency", "frequencies": "frequency", "chan": "frequency",
    "pol": "polarization", "polarisation": "polarization", "ant": "antenna", "station": "antenna",
    "times": "time", "subcarrier": "frequency", "subcarriers": "frequency", "rx": "receiver",
    "receivers": "receiver", "tx": "transmitter", "transmitters": "transmitter",
}  # fmt: skip
"""Other names of axes in files, and those of operands, beside `SYNONYMS`."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAKEN = ("entry", "argand_crc32")
"""Names that a product file has for other things, beside the datasets that are called like axes."""


def operand_axis(name: str) -> str:
    """Return the axis of an operand that a study means by a name."""
    return SYNONYMS.get(name, name)


def in_own_words(name: str) -> str:
    """Return a file's name of an axis, in small letters, as operands have it."""
    name = name.lower()
    return WORDS.get(name, operand_axis(name))


def among(name: str, axes: Iterable[str]) -> str:
    """Return an axis's name in the words that the others have, where a file has its own for it."""
    axes, own = set(axes), in_own_words(name)
    return own if name not in axes and own in axes else name


def unlike(axes: Iterable[str], name: str, prefix: str) -> str:
    """Return a name that no axis has: with the prefix before it, as often as it takes."""
    there = set(axes)
    while name in there:
        name = f"{prefix}_{name}"
    return name


def check_names(key: str, names: Iterable[str]) -> None:
    """Raise ValueError, its text starting with the key, for a name that no axis can have."""
    names = list(names)
    for name in names:
        if not _NAME.fullmatch(name) or name in _TAKEN:
            raise ValueError(
                f"{key}: a name must begin with a letter and go on with at most 63 letters, digits "
                f"and _, and be none of {list(_TAKEN)}, got {name!r}"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"{key}: must name each axis once, got {names}")
