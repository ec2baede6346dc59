"""Antennas and feeds of visibilities' inputs, along an axis of antennas that is made of them.

Weights that `solve` or `gemm` makes of visibilities have along theirs, under names such as
``unknown_conjugated_input_antenna``, which antenna in which polarization each of the inputs is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workflow.data import Coordinate

_ANTENNA, _FEED = "input_antenna", "input_polarization"
"""Ends of the names that they have beside a product along whichever axis it has of inputs."""


def tells_antennas(called: str) -> bool:
    """Return whether a coordinate of this name tells the antennas of inputs."""
    return called.endswith(_ANTENNA)


def tells_feeds(name: str, one: Coordinate) -> bool:
    """Return whether a coordinate tells the feeds of inputs that are an operand's antennas."""
    return name.endswith(_FEED) and one.of(name) == ("antenna",)


def with_antennas(own: Mapping[str, Coordinate]) -> dict[str, Coordinate]:
    """Return an operand's coordinates with the antennas of its inputs as its own.

    They take the place of the numbers of inputs that are selected.
    """
    found = dict(own)
    for name, one in own.items():
        if tells_antennas(name) and one.of(name) == ("antenna",):
            found["antenna"] = replace(one, long_name="antenna", axes=())
    return found
