"""Visibilities of all pairs of inputs: whole matrices, their lower triangles, and whose they are.

An input is an antenna in a polarization, all antennas of one after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from argand.herk.problem import Form, triangle_side

from workflow.config.uvh5_site import Uvh5Site
from workflow.data import PLACES, Coordinate
from workflow.storage.dates import date_in, julian_date
from workflow.storage.input_operand import InputError
from workflow.storage.units import convertible

Array = npt.NDArray[Any]
_DAY_S = 86400.0
_OFF_S = 1.0
"""Seconds that a Julian date of a few digits may be off."""


def in_form(form: Form, full: Any) -> Any:
    """Return matrices (..., n, n) as they are, or their lower triangles row by row.

    They are NumPy's or CuPy's.
    """
    if form == "full":
        return full
    rows, columns = np.tril_indices(full.shape[-1])
    return full[..., rows, columns]


def unfolded(triangle: Array) -> Array:
    """Return (..., n, n) Hermitian matrices from their lower triangles row by row."""
    n = triangle_side(triangle.shape[-1])
    found = np.empty((*triangle.shape[:-1], n, n), triangle.dtype)
    rows, columns = np.tril_indices(n)
    found[..., columns, rows] = np.conj(triangle)
    found[..., rows, columns] = triangle
    return found


def coordinates_of(
    form: Form, polarizations: int, elements: int, known: Mapping[str, Coordinate]
) -> dict[str, Coordinate]:
    """Return the antenna and the polarization of each input, or of each input of a pair.

    They are named by the coordinates of these axes (``known``), else numbered. Where the positions
    of the antennas are known, so are those of the inputs of whole matrices.
    """
    number = np.arange(polarizations * elements)
    places = {"antenna": number % max(1, elements), "polarization": number // max(1, elements)}
    if form == "full":
        sides = {"input": ("input", number), "conjugated_input": ("conjugated_input", number)}
    else:
        rows, columns = np.tril_indices(len(number))
        sides = {"input": ("pair", rows), "conjugated_input": ("pair", columns)}
    found = {}
    for side, (axis, chosen) in sides.items():
        for what, values in places.items():
            one = known.get(what, Coordinate(np.arange(max(polarizations, elements))))
            long_name = f"{what} of the {side.replace('_', ' ')}"
            found[f"{side}_{what}"] = Coordinate(
                one.values[values[chosen]], one.units, long_name, (axis,)
            )
    for name, one in known.items() if form == "full" else ():
        if name in PLACES and one.of(name) == ("antenna",):
            values = np.asarray(one.values)[places["antenna"]]
            found[name] = Coordinate(values, one.units, one.long_name, ("input",))
    return found


def check_for_uvh5(there: Mapping[str, Coordinate], site: Uvh5Site) -> None:
    """Raise InputError where coordinates of voltages lack what a UVH5 file has to say."""
    wrong = []
    for name in ("frequency", "time", *PLACES):
        known = convertible(name)
        if name in there and there[name].units not in known:
            wrong.append(f"{name} must be in one of {known}, got {there[name].units!r}")
        elif name not in there and name != "up":
            wrong.append(f"the voltages have no coordinate {name}, in one of {known}")
    if wrong:
        raise InputError(*(f"uvh5: {text}; give it by input.coordinates" for text in wrong))
    start_of(site, there["time"])


def start_of(site: Uvh5Site, times: Coordinate) -> float:
    """Return the Julian date that times count from: theirs, or the config's where they have none.

    Raises InputError where neither says it, and where both do and it is not the same.
    """
    date, given = date_in(times.long_name), site.julian_date
    known = julian_date(date)
    if known is None:
        if given is None:
            raise InputError(
                f"uvh5.julian_date: must be given, since times count from {date or 'no date'}, and "
                "from none in ISO 8601 and UTC such as 2026-11-28T10:00:00"
            )
        return given
    if given is not None and abs(known - given) * _DAY_S > _OFF_S:
        raise InputError(
            f"uvh5.julian_date: the times count from {date}, which is {known:.6f}, got {given}; "
            "leave it out"
        )
    return known
