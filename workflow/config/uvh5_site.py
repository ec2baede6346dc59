"""Observation that a UVH5 file describes beside its visibilities."""

from __future__ import annotations

from pydantic import Field

from workflow.config.model import Model


class Uvh5Site(Model):
    """The place and the time at which the voltages were taken."""

    telescope: str = Field(
        "argand", min_length=1, max_length=64, description="Name of the telescope."
    )
    latitude_deg: float = Field(ge=-90, le=90, description="Latitude of the array's centre.")
    longitude_deg: float = Field(ge=-180, le=360, description="Longitude of the array's centre.")
    altitude_m: float = Field(
        0.0, ge=-1e4, le=1e5, description="Height of the array's centre above the ellipsoid."
    )
    julian_date: float | None = Field(
        None, ge=0, le=1e7,
        description="Date of the time 0 of the samples, in days, UTC; needed where the times do "
        "not count from a date in ISO 8601.",
    )  # fmt: skip
    channel_width_hz: float | None = Field(
        None, gt=0,
        description="Width of each channel; the least distance between channels where not given. "
        "So it is needed for a single channel, and where `select` takes no neighbours.",
    )  # fmt: skip
