"""An antenna array as a config describes it: where it stands, what arrives, at what frequencies."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from argand.image.problem import SPEED_OF_LIGHT
from pydantic import Field, model_validator

from workflow import antennas
from workflow.config.model import Model

Array = npt.NDArray[Any]


class AntennaArray(Model):
    """The places of the antennas."""

    geometry: antennas.Geometry = Field(
        default="planar", description="A line from west to east, or a square grid."
    )
    spacing_m: float | None = Field(
        default=None,
        gt=0,
        le=1e9,
        description="Distance between neighbours in m; half the shortest wavelength where not "
        "given.",
    )

    def positions(self, count: int, highest_hz: float) -> Array:
        """Return (count, 2) antennas east and north of their centre, in metres."""
        half_wave = SPEED_OF_LIGHT / (2 * highest_hz)
        spacing = half_wave if self.spacing_m is None else self.spacing_m
        return antennas.positions(self.geometry, count, spacing)


class Frequencies(Model):
    """The centres of the channels; the sampling interval is 1 / step_hz."""

    start_hz: float = Field(
        default=150e6, ge=1e-9, le=1e21, description="Frequency of the first channel in Hz."
    )
    step_hz: float = Field(
        default=200e3, ge=1e-9, le=1e21, description="Distance between channels in Hz."
    )

    def centres(self, channels: int) -> Array:
        """Return (channels,) in Hz."""
        return self.start_hz + self.step_hz * np.arange(channels)


class Direction(Model):
    """A direction by l and m, or by azimuth and elevation."""

    what: ClassVar[str]
    """The subject of an error."""

    l: float | None = Field(default=None, ge=-1, le=1, description="Direction cosine towards east.")  # noqa: E741
    m: float | None = Field(
        default=None, ge=-1, le=1, description="Direction cosine towards north."
    )
    azimuth_deg: float | None = Field(
        default=None, ge=-360, le=360, description="Angle from north through east."
    )
    elevation_deg: float | None = Field(
        default=None, ge=0, le=90, description="Angle above the horizon."
    )

    @model_validator(mode="after")
    def _one_direction(self) -> Direction:
        values = (self.l, self.m, self.azimuth_deg, self.elevation_deg)
        given = tuple(value is not None for value in values)
        if given not in ((True, True, False, False), (False, False, True, True)):
            raise ValueError(
                f"{self.what} must have either l and m, or azimuth_deg and elevation_deg"
            )
        if np.hypot(*self.direction) > 1 + 1e-12:
            raise ValueError(f"its l^2 + m^2 must be at most 1, got l {self.l} and m {self.m}")
        return self

    @property
    def direction(self) -> tuple[float, float]:
        """(l, m)."""
        if self.l is not None and self.m is not None:
            return self.l, self.m
        return antennas.direction_cosines(self.azimuth_deg or 0.0, self.elevation_deg or 0.0)


class PhaseCentre(Direction):
    """The direction in the middle of a grid: by l and m, or by azimuth and elevation."""

    what: ClassVar[str] = "phase_centre"


ZENITH = PhaseCentre(l=0.0, m=0.0)


class Source(Direction):
    """A plane wave of Gaussian noise: its direction by l and m, or by azimuth and elevation."""

    what: ClassVar[str] = "a source"
    power: float = Field(default=1.0, gt=0, le=1e12, description="Mean power at one antenna.")
