"""Places of antennas and frequencies of waves, and checks that directions follow from them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from argand.image.geometry import require_places
from argand.image.problem import SPEED_OF_LIGHT

from workflow.data import OVERLAPPING, PLACES, SELECTED, Array, Coordinate, is_blank
from workflow.files.input_error import InputError
from workflow.files.units import check_arrived, convertible, in_base

REQUIRED = {"frequency": "frequency", "east": "antenna", "north": "antenna"}
"""The coordinates that say where antennas are, and the axis of each."""

EARTH_M = 6.33e6, 6.40e6
"""The Earth's surface is farther from its centre than the first, and nearer than the second."""
MIN_WAVELENGTHS = 0.05
"""An array that is smaller has nearly the same phase at all antennas: 9 degrees at most."""
HALF_COHERENT = 0.603
"""Samples by which a wave of a channel's noise is late where half of its correlation is lost."""
HOW_TO_PLACE = (
    "give input.coordinates to the workload that reads the antennas' file, for east as "
    "{dataset: path, units: m, axis: antenna}"
)
"""The advice of an error where antennas have no positions, in a file or in a workload's product."""


def channel_centres(hertz: Array) -> Coordinate:
    """Return (channels,) frequencies as the coordinate ``frequency`` of simulated channels."""
    return Coordinate(hertz, "Hz", "centre of the channel")


def antenna_positions(where: Array) -> Coordinate:
    """Return (antennas, 2) east and north in m as one coordinate, ``antenna_position``."""
    return Coordinate(where, "m", "east and north of an antenna", ("antenna", "east_north"))


def lacking_places(there: Mapping[str, Coordinate]) -> list[str]:
    """Return the names of `REQUIRED` that are not there, or not along their axis."""
    return [
        name for name, axis in REQUIRED.items()
        if name not in there or there[name].of(name) != (axis,)
    ]  # fmt: skip


def in_hz_or_m(there: Mapping[str, Coordinate], name: str) -> Array:
    """Return the values of a frequency in Hz, or of a place in m.

    Raises InputError for no unit, and for frequencies that are offsets (`check_arrived`).
    """
    found = there[name]
    if found.units not in (known := convertible(name)):
        raise InputError(f"input.coordinates.{name} must be in one of {known}, got {found.units!r}")
    values = in_base(name, found.values, found.units)
    if name == "frequency":
        check_arrived("input.coordinates.frequency", values, found.long_name)
    return values


def check_near(there: Mapping[str, Coordinate], key: str, how: str) -> None:
    """Raise InputError for antennas and frequencies that `argand.image` does not take.

    These are a channel at 0 Hz, and antennas too many wavelengths apart; ``key`` is what says them,
    ``how`` what to do. Values that are not read yet are let through.
    """
    known = [there[name] for name in ("frequency", *PLACES) if name in there]
    if any(is_blank(one.values) for one in known):
        return
    hertz, *where = (in_hz_or_m(there, n) for n in ("frequency", *PLACES) if n in there)
    try:
        require_places(np.stack(where, axis=-1), hertz)
    except ValueError as error:
        raise InputError(f"{key}: {error}; {how}") from None


def check_up(there: Mapping[str, Coordinate]) -> None:
    """Raise InputError where up is not one number for each antenna, as east and north are."""
    axes = there["up"].of("up") if "up" in there else ("antenna",)
    if axes != ("antenna",):
        raise InputError(
            "input.coordinates.up: must be of the axis antenna, as east and north are, got "
            f"{' and '.join(axes)}; give it as {{dataset: path, units: m, axis: antenna}}, or "
            "under another name"
        )


def refuse_geocentric(there: Mapping[str, Coordinate]) -> None:
    """Raise InputError where antennas are as far from the origin as the Earth's surface.

    Those places are x, y and z from its centre, and none to the east, north and up.
    """
    shapes = {there[name].values.shape if name in there else None for name in PLACES}
    if None in shapes or len(shapes) > 1:  # such as an up that stands along another axis
        return
    place = np.stack([in_hz_or_m(there, name) for name in PLACES])
    with np.errstate(over="ignore"):  # of places that are farther than any number
        distance = np.hypot.reduce(place, axis=0)
    if distance.size and EARTH_M[0] < distance.min() and distance.max() < EARTH_M[1]:
        raise InputError(
            f"input.coordinates.east, north and up: antennas are {distance.min() / 1e3:.0f} km "
            "from the origin, so these are x, y and z from the Earth's centre; of longitude a and "
            "latitude b east is -x sin a + y cos a, north (-x cos a - y sin a) sin b + z cos b, up "
            "(x cos a + y sin a) cos b + z sin b"
        )


def unresolved(place: Array, hertz: Array) -> str:
    """Return a remark on an array that is far smaller than a wavelength, "" for any other.

    Args:
        place: (antennas, 2 or 3) in m.
        hertz: (channels,) frequencies.
    """
    across = float(np.hypot.reduce(np.ptp(place, axis=0))) if len(place) else 0.0
    wavelengths = across * float(hertz.max(initial=0.0)) / SPEED_OF_LIGHT
    if len(place) < 2 or wavelengths >= MIN_WAVELENGTHS:
        return ""
    return (
        f"the antennas are {wavelengths:.2g} wavelengths of light apart at most, so that all "
        "directions look alike: look at the units of frequencies and places, and of sound multiply "
        "frequencies by the speed of light over its own"
    )


def mirrored(there: Mapping[str, Coordinate]) -> str:
    """Return a remark on directions of samples whose frequencies fall, "" for any others.

    Files do not say whether a receiver has reversed a spectrum, and with it conjugated phases, or
    a recorder has put channels into this order.
    """
    names = ("frequency", f"{SELECTED}frequency")
    if not any(there[name].is_reversed for name in names if name in there):
        return ""
    return (
        "the file's bandwidth is below 0: where a receiver has reversed the spectrum, phases are "
        "conjugated too, and directions are mirrored, at -l and -m"
    )


def added_twice(there: Mapping[str, Coordinate]) -> str:
    """Return a remark on a sum over channels that overlap, "" for any others."""
    if OVERLAPPING not in there["frequency"].long_name:
        return ""
    return (
        "channels within coarse ones overlap, and the power of some frequencies is added twice: "
        "take the middle of these by input.select where the product that has them is read"
    )


def incoherent(there: Mapping[str, Coordinate], farthest: float = 1.0) -> str:
    """Return a remark on samples whose channels are too wide for an array, "" for any others.

    A wave that arrives at two antennas by delays t apart has the part sinc(t / step) of its
    correlation, for samples a step apart of noise as wide as their channel.

    Args:
        there: the coordinates of samples; of nothing where they lack times or places.
        farthest: sine of the largest angle off the zenith that is considered.
    """
    time = there.get("time")
    if time is None or time.units not in convertible("time") or time.values.size < 2:
        return ""
    if "antenna_position" in there:
        where = there["antenna_position"].values
    elif all(_is_place(there, name) for name in PLACES[:2]):
        where = np.stack([in_hz_or_m(there, name) for name in PLACES[:2]], axis=-1)
    else:
        return ""
    step = float(np.ptp(in_base("time", time.values[[0, -1]], time.units)))
    step /= time.values.size - 1
    across = float(np.ptp(where[:, :2], axis=0).max()) if len(where) else 0.0
    sine = HALF_COHERENT * step * SPEED_OF_LIGHT / across if across else 1.0
    if sine >= farthest:
        return ""
    return (
        f"samples every {step:.3g} s lose half of the correlation of the farthest antennas, "
        f"{across:.3g} m apart, for waves {np.degrees(np.arcsin(sine)):.2g} deg off the zenith and "
        "beyond, unless delays were taken out before: narrower channels (kind: channelise) keep it"
    )


def _is_place(there: Mapping[str, Coordinate], name: str) -> bool:
    """Return whether a coordinate is a length along the antennas."""
    one = there.get(name)
    return one is not None and one.of(name) == ("antenna",) and one.units in convertible(name)


def of_directions(there: Mapping[str, Coordinate]) -> str:
    """Return a remark on the directions of `steered` weights, "" if there is none."""
    close = unresolved(there["antenna_position"].values, in_hz_or_m(there, "frequency"))
    return "; ".join(filter(None, (close, mirrored(there))))
