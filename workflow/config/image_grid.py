"""The directions of an image, as a config describes them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from argand.image.problem import SPEED_OF_LIGHT
from pydantic import Field, model_validator

from workflow.config.antenna_array import ZENITH, PhaseCentre
from workflow.config.model import Model

Array = npt.NDArray[np.float64]


class Directions(Model):
    """A square grid of direction cosines l (east) and m (north)."""

    n: int = Field(ge=1, le=1 << 13, description="Directions along l, and along m.")
    field_of_view_deg: float | None = Field(
        default=None,
        gt=0,
        le=180,
        description="Angle from the first l to the last, about the zenith.",
    )
    cell_arcmin: float | None = Field(
        default=None,
        gt=0,
        le=5400,
        description="Distance between neighbours at the zenith, in place of `field_of_view_deg`.",
    )
    phase_centre: PhaseCentre = Field(
        default=ZENITH, description="The middle of the grid; by default the zenith."
    )

    @model_validator(mode="after")
    def _is_above_the_horizon(self) -> Directions:
        if (self.field_of_view_deg is None) == (self.cell_arcmin is None):
            raise ValueError("directions must have either field_of_view_deg or cell_arcmin")
        l, m = self.axes  # noqa: E741
        far = float(np.hypot(np.abs(l).max(), np.abs(m).max()))
        if far > 1:
            raise ValueError(
                "directions: the grid's corners must stay above the horizon, l^2 + m^2 <= 1, but "
                f"one has a distance of {far:.4g} from the zenith; about the zenith the field of "
                "view is at most 90 degrees"
            )
        return self

    @property
    def cell(self) -> float:
        """Distance of neighbours in direction cosines."""
        if self.cell_arcmin is not None:
            return math.sin(math.radians(self.cell_arcmin / 60))
        half = math.sin(math.radians(self.field_of_view_deg or 0.0) / 2)
        return 2 * half / max(1, self.n - 1)

    def coarseness(self, across_m: float, highest_hz: float) -> str:
        """Return a remark on a grid coarser than an array resolves, "" for any other.

        An array of ``across_m`` from end to end sees a source as wide as the wavelength over that:
        halfway between neighbours that are as far apart, each axis has lost 4 dB of it.
        """
        if self.n == 1 or self.cell * across_m * highest_hz <= SPEED_OF_LIGHT:
            return ""
        apart, resolved = (
            math.degrees(math.asin(min(1.0, cosine)))
            for cosine in (self.cell, SPEED_OF_LIGHT / (across_m * highest_hz))
        )
        return (
            f"directions are {apart:.3g} deg apart at the zenith and the array resolves "
            f"{resolved:.3g} deg, so a source between them may be missed: directions.cell_arcmin "
            f"of {float(f'{30 * resolved:.2g}'):g} sees all"
        )

    @property
    def axes(self) -> tuple[Array, Array]:
        """(n,) l and (n,) m, ascending."""
        steps = (np.arange(self.n) - (self.n - 1) / 2) * self.cell
        l, m = self.phase_centre.direction  # noqa: E741
        return np.asarray(l + steps, float), np.asarray(m + steps, float)

    @property
    def cosines(self) -> Array:
        """(n^2, 3) l, m and n of each direction, l the faster one."""
        m, l = np.meshgrid(*self.axes[::-1], indexing="ij")  # noqa: E741
        height = np.sqrt(np.maximum(0.0, 1 - l**2 - m**2))
        return np.stack([l.ravel(), m.ravel(), height.ravel()], axis=-1)
