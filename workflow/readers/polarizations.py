"""Polarizations: of visibilities by the codes of AIPS memo 117 and UVH5, of voltages by feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from workflow.data import Array, Coordinate
from workflow.files.input_error import InputError

POLARIZATIONS = {
    1: "I", 2: "Q", 3: "U", 4: "V", -1: "rr", -2: "ll", -3: "rl", -4: "lr", -5: "xx", -6: "yy",
    -7: "xy", -8: "yx",
}  # fmt: skip
"""Names by code: of two feeds that of the baseline's first antenna and that of its second."""
LINEAR, CIRCULAR = ("x", "y"), ("r", "l")
_SAME = {
    "rcp": "r", "rhcp": "r", "rhc": "r", "right": "r", "lcp": "l", "lhcp": "l", "lhc": "l",
    "left": "l",
}  # fmt: skip
"""Other names of circular feeds in small letters."""
_IN_TURN = {-3: -4, -4: -3, -7: -8, -8: -7}


def named_codes(codes: Array, path: Path) -> Array:
    """Return the names of the codes of a UVH5 file's polarizations; others are their numbers.

    Raises InputError for a code of 0, which says that each spectral window has another one.
    """
    if 0 in codes:
        raise InputError(
            f"input.file: {path} has another polarization in each spectral window (a code of 0, "
            "flex_spw_polarization_array); pyuvdata's UVData.remove_flex_pol makes an axis of them"
        )
    return np.array([POLARIZATIONS.get(int(code), str(code)) for code in codes])


def in_turn(codes: Sequence[int]) -> Array:
    """Return for each code the place of the one with its feeds exchanged, yx for xy, or -1."""
    turned = [_IN_TURN.get(code, code) for code in codes]
    return np.array([codes.index(code) if code in codes else -1 for code in turned])


def feeds_of(coordinates: Mapping[str, Coordinate], name: str) -> tuple[str, ...] | None:
    """Return the names along a coordinate in small letters, each once; None for numbers or none.

    Circular feeds have one name, r or l, whatever the file calls them.
    """
    found = coordinates.get(name)
    if found is None or found.values.dtype.kind in "fiub":
        return None
    names = [str(value).strip().lower() for value in found.values]
    return tuple(dict.fromkeys(_SAME.get(one, one) for one in names))


def of_voltages(power: Coordinate) -> Coordinate:
    """Return the feeds of polarizations that are power of one each, x of xx; others as they are."""
    if power.values.dtype.kind in "fiub":
        return power
    names = [str(name) for name in power.values]
    feeds = [name[:1] if name.lower() == 2 * name[:1].lower() else name for name in names]
    return replace(power, values=np.array(feeds))


def check_linear(feeds: tuple[str, ...] | None) -> None:
    """Raise InputError where feeds are known, and others than x before y as `detect: stokes`.

    h, of horizontal, is x, and v is y.
    """
    if feeds and ({*feeds} <= {*CIRCULAR} or feeds in (LINEAR[::-1], ("v", "h"))):
        hint = "`detect: power` takes each feed by itself"
        if "y" in feeds or "v" in feeds:
            hint = "`polarization: [1, 0]` in input.select turns them"
        raise InputError(
            f"detect: stokes is of linear feeds, x before y, got {' before '.join(feeds)}; {hint}"
        )


def check_written(voltages: Mapping[str, Coordinate], count: int) -> None:
    """Raise InputError for polarizations that UVH5 has not: more than two, or of other feeds.

    Without names the first is x. Numbers that a study selects say no more of feeds: entry 1 alone
    may be y, and 1 before 0 may be x before y or not.
    """
    if count > 2:
        raise InputError(f"uvh5: there must be at most 2 polarizations, got {count}")
    feeds, known = feeds_of(voltages, "polarization"), voltages.get("polarization")
    if feeds is None:
        if known is not None and known.values.tolist() != list(range(count)):
            raise InputError(
                f"uvh5: the polarizations are entries {known.values.tolist()} of the input's, "
                "which says nothing of feeds; name them by `polarization: [x, y]` in "
                "input.coordinates"
            )
        return
    are_known = any({*feeds} <= {*names} for names in (LINEAR, CIRCULAR))
    if not are_known or len(feeds) != count:
        raise InputError(
            f"uvh5: {count} polarizations must be x and y, or r and l, each once, or have numbers "
            f"alone, got {', '.join(feeds)}"
        )
