"""Antennas in the header of a UVH5 file: where they stand, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping

import h5py
import numpy as np

from workflow.data import Array, Coordinate, places
from workflow.files.chunk_filters import ChunkError
from workflow.files.chunk_sizes import check_filters
from workflow.files.input_error import InputError
from workflow.files.links import DatasetError, find_dataset
from workflow.files.names import is_text, read_names
from workflow.readers.covariance import east_north_up


def places_of(what: str, header: Mapping[str, Array], antennas: Array) -> dict[str, Coordinate]:
    """Return east, north and up of some ``antennas`` in m, by the arrays of a header.

    Raises InputError, which begins with ``what``, where these do not fit together.
    """
    numbers, flat = header["antenna_numbers"], header["antenna_positions"]
    latitude, longitude = header["latitude"], header["longitude"]
    fits = flat.size == 3 * numbers.size and latitude.size == longitude.size == 1
    fits = fits and all(np.isfinite(one).all() for one in (numbers, flat, latitude, longitude))
    if not fits or not np.isin(antennas, numbers).all():
        raise InputError(
            f"{what}: Header/antenna_positions must have three finite values for each of "
            "Header/antenna_numbers, among them all antennas of the data"
        )
    order = np.argsort(numbers, kind="stable")
    chosen = flat.reshape(-1, 3)[order[np.searchsorted(numbers, antennas, sorter=order)]]
    return places(east_north_up(chosen, float(latitude[0]), float(longitude[0])))


def names_of(file: h5py.File, numbers: Array) -> dict[int, str]:
    """Return antennas' names by their numbers; none where the header has no text for each.

    Names that are the numbers say nothing.
    """
    try:
        found = find_dataset(file, "Header/antenna_names")
        check_filters(found)
        if not is_text(found) or found.shape != numbers.shape:
            return {}
        names = read_names(found, "Header/antenna_names").tolist()
    except (DatasetError, ChunkError, InputError):
        return {}
    named = dict(zip(map(int, numbers.tolist()), names, strict=True))
    return {} if all(name == str(number) for number, name in named.items()) else named
