"""Visibilities as UVH5 (pyuvdata memo 114, version 1.2), for programs that read nothing else.

The phase centre is the zenith, which moves with the Earth (`unprojected`): baselines are east,
north and up of the array, from an antenna to itself or to a later one. With uvw = r_2 - r_1 a
source at direction s has V_12 = conj(x_1) x_2 = exp(2 pi i f uvw . s / c), as pyuvdata's
conventions want it, because voltages are ahead by r . s / c (`workflow.antennas`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from workflow.config.uvh5_site import Uvh5Site
from workflow.data import PLACES, Array, Coordinate, Product
from workflow.files.units import in_base
from workflow.inputs.lacking import LOST, ZEROS
from workflow.inputs.provenance import MADE_OF
from workflow.inputs.uvh5_needs import dates_of
from workflow.readers.covariance import geocentric
from workflow.readers.polarizations import LINEAR, POLARIZATIONS, feeds_of
from workflow.readers.visibilities import DATA
from workflow.storage.certificates import CAVEATS, read_certificate
from workflow.storage.failures import writing
from workflow.storage.products import read_outline, read_product
from workflow.storage.run_folder import result_path

_CHUNK_VALUES = 1 << 17
"""Visibilities of a chunk."""


@dataclass(frozen=True)
class _Header:
    """Columns of the rows: baselines of an integration after those of the one before.

    ``antennas`` are the names or numbers of antennas, ``feeds`` those of polarizations.
    """

    first: Array
    second: Array
    seconds: Array
    lengths: Array
    frequency: Array
    places: Array
    antennas: Array
    feeds: tuple[str, ...]


def write_uvh5(product_path: Path, path: Path, site: Uvh5Site) -> int:
    """Write the visibilities of a product of `correlate` as a UVH5 file; return the baselines.

    Args:
        product_path: (frequency, integration, input, conjugated_input), with the coordinates that
            `uvh5_needs.check_for_uvh5` asks for.
        path: where it goes, atomically.
        site: what the product does not know: where and when it was.
    """
    outline = read_outline(product_path)
    header = _header(outline)
    history = _history(outline.title, read_certificate(product_path))
    with (
        result_path(path) as temporary,
        writing(temporary, alone=False),
        h5py.File(temporary, "w", libver="v110") as file,
    ):
        _write_header(file.create_group("Header"), header, site, outline, history)
        data, flags, counts = _create_data(file, header, outline.data.dtype)
        whole = [slice(length) for length in outline.data.shape]
        for number in range(len(header.seconds)):
            part = [whole[0], slice(number, number + 1), *whole[2:]]
            matrices = read_product(product_path, part=part).data[:, 0]
            rows = slice(number * len(header.first), (number + 1) * len(header.first))
            found = _of_baselines(matrices, header)
            bad = ~np.isfinite(found) | _of_baselines(_of_silent(matrices), header)
            with writing(temporary, matrices.nbytes):
                if bad.any():
                    found[bad], flags[rows], counts[rows] = 0, bad, ~bad
                data[rows] = found
    return len(header.first)


def _pairs(polarizations: int) -> list[tuple[int, int]]:
    """Return (polarization of the first antenna, of the second), as the memo orders them."""
    both = [(one, one) for one in range(polarizations)]
    return both + list(itertools.permutations(range(polarizations), 2))


def _header(product: Product) -> _Header:
    known = product.coordinates
    inputs = len(known["input_polarization"].values)
    count = len(np.unique(known["input_polarization"].values))
    feeds = feeds_of(known, "input_polarization") or LINEAR[:count]
    elements = inputs // count
    places = np.zeros((elements, 3))
    for axis, name in enumerate(PLACES):
        if name in known:
            places[:, axis] = _in_base(known, name)[:elements]
    first, second = np.triu_indices(elements)
    return _Header(
        first=first, second=second, seconds=_in_base(known, "integration"),
        lengths=_in_base(known, "integration_time"), frequency=_in_base(known, "frequency"),
        places=places, antennas=np.asarray(known["input_antenna"].values[:elements]), feeds=feeds,
    )  # fmt: skip


def _in_base(known: Mapping[str, Coordinate], name: str) -> Array:
    return np.asarray(in_base(name, known[name].values, known[name].units), float)


def _create_data(
    file: h5py.File, header: _Header, dtype: np.dtype[Any]
) -> tuple[h5py.Dataset, h5py.Dataset, h5py.Dataset]:
    """Create the datasets of visibilities, of flags and of sample counts."""
    inner = (len(header.frequency), len(_pairs(len(header.feeds))))
    shape = (len(header.seconds) * len(header.first), *inner)
    chunks = (max(1, min(len(header.first), _CHUNK_VALUES // (inner[0] * inner[1]))), *inner)
    # Every sample counts once; those that are no number or of a silent input are flagged.
    return (
        file.create_dataset(DATA, shape, dtype, chunks=chunks, fletcher32=True),
        file.create_dataset("Data/flags", shape, bool, fillvalue=False, chunks=chunks),
        file.create_dataset("Data/nsamples", shape, "f4", fillvalue=1.0, chunks=chunks),
    )


def _of_baselines(matrices: Array, header: _Header) -> Array:
    """Return (baseline, frequency, polarization) of (frequency, input, input)."""
    elements = len(header.places)
    found = [
        matrices[:, other * elements + header.second, one * elements + header.first]
        for one, other in _pairs(len(header.feeds))
    ]
    return np.stack(found, axis=-1).swapaxes(0, 1)


def _of_silent(matrices: Array) -> Array:
    """Return which of (..., input, input) have an input whose own power is 0.

    Such an input is dead, or has no samples in this integration.
    """
    silent = np.diagonal(matrices, axis1=-2, axis2=-1) == 0
    return np.asarray(silent[..., :, None] | silent[..., None, :])


def _history(title: str, certificate: Mapping[str, Any]) -> str:
    """Return what is known of the voltages, and of the data that these are made of."""
    known, made_zero = [f"argand: {title}"], False
    waiting = [("", certificate)]
    while waiting:
        whose, one = waiting.pop(0)
        if CAVEATS in one:
            known.append(f"{whose}{one[CAVEATS]}")
        made_zero |= bool({ZEROS, LOST} & {*one})
        waiting += [(f"of {each['workload']}, ", each) for each in one.get(MADE_OF, {}).values()]
    return "; ".join([*known, *["nsamples counts samples that are lost or 0"] * made_zero])


def _write_header(
    group: h5py.Group, header: _Header, site: Uvh5Site, product: Product, history: str
) -> None:
    times, baselines, elements = len(header.seconds), len(header.first), len(header.places)
    rows, channels = times * baselines, len(header.frequency)
    spacing = np.diff(header.frequency)
    width = site.channel_width_hz or (float(np.abs(spacing).min()) if channels > 1 else 0.0)
    names = {name: code for code, name in POLARIZATIONS.items()}
    pairs = [header.feeds[one] + header.feeds[other] for one, other in _pairs(len(header.feeds))]
    days = dates_of(site, product.coordinates["integration"])
    uvw = header.places[header.second] - header.places[header.first]
    named, numbers = _antennas(header.antennas)
    header_values: dict[str, Any] = {
        "version": "1.2", "telescope_name": site.telescope, "instrument": site.telescope,
        "latitude": site.latitude_deg, "longitude": site.longitude_deg,
        "altitude": site.altitude_m, "history": history,
        "vis_units": "uncalib", "flex_spw": False,
        "Nants_data": elements, "Nants_telescope": elements, "Nbls": baselines, "Nblts": rows,
        "Nfreqs": channels, "Npols": len(pairs), "Nspws": 1, "Ntimes": times, "Nphase": 1,
        "antenna_numbers": numbers, "antenna_names": named,
        "antenna_positions": geocentric(header.places, site.latitude_deg, site.longitude_deg),
        "ant_1_array": np.tile(numbers[header.first], times),
        "ant_2_array": np.tile(numbers[header.second], times),
        "uvw_array": np.tile(uvw, (times, 1)),
        "time_array": np.repeat(days, baselines),
        "integration_time": np.repeat(header.lengths, baselines),
        "freq_array": header.frequency, "channel_width": np.full(channels, width),
        "spw_array": np.zeros(1, int),
        "polarization_array": np.array([names[pair] for pair in pairs]),
        "phase_center_id_array": np.zeros(rows, int),
        # The zenith: its right ascension is the sidereal time, its declination the latitude.
        "phase_center_app_ra": np.repeat(_sidereal(days, site.longitude_deg), baselines),
        "phase_center_app_dec": np.full(rows, np.deg2rad(site.latitude_deg)),
        "phase_center_frame_pa": np.zeros(rows),
    }  # fmt: skip
    for name, value in header_values.items():
        # Texts are bytes in UTF-8, as pyuvdata decodes them.
        group[name] = np.bytes_(value.encode()) if isinstance(value, str) else value
    centre = group.create_group("phase_center_catalog/0")
    for name, text in (("cat_name", "zenith"), ("cat_type", "unprojected"), ("cat_frame", "altaz")):
        centre[name] = np.bytes_(text)
    centre["cat_lon"], centre["cat_lat"] = 0.0, np.pi / 2


def _antennas(known: Array) -> tuple[Array, Array]:
    """Return the names and numbers of antennas: their own numbers, or 0, 1, ... beside names."""
    numbers = np.arange(len(known))
    if known.dtype.kind in "iuf" and not np.any(known % 1) and len(np.unique(known)) == len(known):
        known = known.astype(np.int64)
        numbers = known if known.min() >= 0 else numbers
    return np.array([str(one).encode() for one in known.tolist()]), numbers


def _sidereal(days: Array, longitude_deg: float) -> Array:
    """Return local mean sidereal time in radians of Julian dates: Earth's rotation and precession.

    Capitaine and others 2003, equation 42, without its terms from the square on, and with UTC for
    UT1, from which it is kept within 0.9 s.
    """
    since = np.asarray(days) - 2451545.0
    turns = 0.7790572732640 + 1.00273781191135448 * since
    precession = np.deg2rad((0.014506 + 4612.156534 * since / 36525) / 3600)
    return np.asarray((2 * np.pi * turns + precession + np.deg2rad(longitude_deg)) % (2 * np.pi))
