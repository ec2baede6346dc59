"""Visibilities of all pairs of inputs: whole matrices, their lower triangles, and whose they are.

An input is an antenna in a polarization, all antennas of one after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from argand.herk.problem import Form, triangle_side

from workflow.data import ONLY, PLACES, Coordinate

Array = npt.NDArray[Any]


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

    They are named by the coordinates of these axes (``known``), else numbered; the number of the
    only polarization says which one it is where a study selected it (`ONLY`). Where the positions
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
            if what == "polarization" and polarizations == 1 and what not in known:
                long_name += f", {ONLY}"
            found[f"{side}_{what}"] = Coordinate(
                one.values[values[chosen]], one.units, long_name, (axis,)
            )
    for name, one in known.items() if form == "full" else ():
        if name in PLACES and one.of(name) == ("antenna",):
            values = np.asarray(one.values)[places["antenna"]]
            found[name] = Coordinate(values, one.units, one.long_name, ("input",))
    return found


def perhaps_turned(shape: tuple[int, ...]) -> str:
    """Return a remark on unnamed voltages (..., antenna, time) of more antennas than times.

    It is "" for others. Arrays of a recorder have most often time first.
    """
    antennas, times = shape[-2:]
    if antennas <= times:
        return ""
    return (
        f"nothing names the axes of voltages, which are read as antenna {antennas} and time "
        f"{times}: where time is first, name them by input.axes"
    )
