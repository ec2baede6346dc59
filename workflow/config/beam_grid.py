"""The keys of beams towards a regular grid of direction cosines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from workflow import antennas
from workflow.config.antenna_array import ZENITH, AntennaArray, PhaseCentre
from workflow.config.case import Case

Array = npt.NDArray[Any]


class BeamGrid(Case):
    """A case whose beams lie on a grid: a line, or a square where the array is planar."""

    beams: int | None = Field(None, ge=1, le=1 << 20, description="Beams formed.")
    extent: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Largest direction cosine of the grid of beams, from its middle.",
    )
    phase_centre: PhaseCentre = Field(
        ZENITH, description="The middle of the grid; by default the zenith."
    )
    array: AntennaArray = Field(AntennaArray(), description="Geometry of the array.")

    def directions(self) -> Array:
        """Return (beams, 2) direction cosines of the beams."""
        return antennas.beam_directions(
            self.array.geometry, self.beams or 0, self.extent, self.phase_centre.direction
        )

    def check_above_horizon(self) -> None:
        """Raise ValueError where the grid reaches below the horizon."""
        if self.beams is None:
            return
        if (far := float(np.hypot(*self.directions().T).max())) > 1 + 1e-12:
            raise ValueError(
                "extent: all beams about phase_centre must stay above the horizon, l^2 + m^2 <= 1, "
                f"but one has a distance of {far:.4g} from the zenith; about the zenith a planar "
                "grid has an extent of at most 0.707"
            )
