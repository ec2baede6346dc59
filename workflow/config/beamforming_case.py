"""The parameters of beamforming."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from workflow.config.antenna_array import Frequencies, Source
from workflow.config.beam_grid import BeamGrid
from workflow.config.detected_beams_case import DetectedBeamsCase
from workflow.config.file_input import OF_ANTENNAS, DatasetRef, FileInput
from workflow.config.integration import integrated


class BeamformingInput(FileInput):
    """Weights and samples in an HDF5 file, or samples alone."""

    weights: DatasetRef | None = Field(
        None,
        description="As `samples`, with the axes (frequency, polarization, beam, antenna). Without "
        "it, `beams` of the grid of `extent` are steered by frequency, east, north and up of the "
        "antennas, which `coordinates` say, or the workload that made the samples. A single "
        "antenna without a known place is its own beam, with `beams: 1`.",
    )
    samples: DatasetRef = Field(description=OF_ANTENNAS)


class BeamformingCase(BeamGrid, DetectedBeamsCase):
    """Beams towards a grid of directions from the samples of an antenna array.

    The beams lie on a regular grid of direction cosines about `phase_centre`: l from -extent to
    extent for a linear array, l and m for a planar one, with as many rows as make it nearest to a
    square.
    """

    kind: Literal["beamforming"]
    channels: int = Field(1, ge=1, le=1 << 20, description="Frequency channels.")
    polarizations: int = Field(1, ge=1, le=4, description="Polarizations.")
    antennas: int | None = Field(None, ge=1, le=1 << 20, description="Antennas of the array.")
    samples: int | None = Field(None, ge=1, le=1 << 28, description="Time samples of a channel.")
    frequencies: Frequencies = Field(Frequencies(), description="Centres of the channels.")
    sources: tuple[Source, ...] = Field(
        (Source(l=0.25, m=0.125, power=1.0),), description="Plane waves that arrive."
    )
    noise: float = Field(1.0, ge=0, description="Power of each antenna's own noise.")
    input: BeamformingInput | None = Field(None, description="Weights and samples from a file.")

    @model_validator(mode="after")
    def _fits(self) -> BeamformingCase:
        # Beams that are steered by a file's antennas lie on the grid that the config names.
        grid = () if self.steered else ("beams",)
        drawn = () if self.steered else ("array", "extent", "phase_centre")
        self.check_sizes_or_input(
            (*grid, "antennas", "samples", "channels", "polarizations"),
            (*drawn, "frequencies", "sources", "noise"),
        )
        if self.steered and self.beams is None:
            raise ValueError("beams must be given where the input has no weights: so many are made")
        if self.steered and self.array.spacing_m is not None:
            raise ValueError(
                "array.spacing_m must not be given beside input: the antennas are there"
            )
        if self.samples is not None:
            integrated(self.samples, self.integrate)
        if self.detect == "stokes" and self.input is None and self.polarizations != 2:
            raise ValueError(f"detect: stokes needs polarizations: 2, got {self.polarizations}")
        self.check_above_horizon()
        return self

    @property
    def steered(self) -> bool:
        """Whether beams are steered by where the antennas of the user's data stand."""
        return self.input is not None and self.input.weights is None
