"""An antenna array as a config describes it: where it stands, what arrives, at what frequencies."""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from workflow.arrays import antennas
from workflow.config.model import Model


class AntennaArray(Model):
    """Where the antennas stand."""

    geometry: antennas.Geometry = Field(
        default="planar", description="A line from west to east, or a square grid."
    )
    spacing_m: float | None = Field(
        default=None,
        gt=0,
        description="Distance of neighbours in m; half the shortest wavelength where not given.",
    )


class Frequencies(Model):
    """The centres of the channels; the sampling interval is 1 / step_hz."""

    start_hz: float = Field(
        default=150e6, gt=0, description="Frequency of the first channel in Hz."
    )
    step_hz: float = Field(default=200e3, gt=0, description="Distance of channels in Hz.")


class Source(Model):
    """A plane wave of Gaussian noise: its direction by l and m, or by azimuth and elevation."""

    l: float | None = Field(default=None, ge=-1, le=1, description="Direction cosine towards east.")  # noqa: E741
    m: float | None = Field(
        default=None, ge=-1, le=1, description="Direction cosine towards north."
    )
    azimuth_deg: float | None = Field(
        default=None, ge=-360, le=360, description="From north through east, in degrees."
    )
    elevation_deg: float | None = Field(
        default=None, ge=0, le=90, description="Above the horizon, in degrees."
    )
    power: float = Field(default=1.0, gt=0, description="Mean power at one antenna.")

    @model_validator(mode="after")
    def _one_direction(self) -> Source:
        values = (self.l, self.m, self.azimuth_deg, self.elevation_deg)
        given = tuple(value is not None for value in values)
        if given not in ((True, True, False, False), (False, False, True, True)):
            raise ValueError("a source must have either l and m, or azimuth_deg and elevation_deg")
        if np.hypot(*self.direction) > 1 + 1e-12:
            raise ValueError(f"l^2 + m^2 must be at most 1, got l {self.l} and m {self.m}")
        return self

    @property
    def direction(self) -> tuple[float, float]:
        """(l, m)."""
        if self.l is not None and self.m is not None:
            return self.l, self.m
        return antennas.direction_cosines(self.azimuth_deg or 0.0, self.elevation_deg or 0.0)
