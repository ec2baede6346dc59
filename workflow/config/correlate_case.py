"""The parameters of correlations."""

from __future__ import annotations

from typing import Literal

from argand.herk.problem import Form
from pydantic import Field, model_validator

from workflow.config.antenna_array import AntennaArray, Frequencies, Source
from workflow.config.file_input import OF_ANTENNAS, DatasetRef, FileInput
from workflow.config.integration import integrated
from workflow.config.matrix_product_case import MatrixProductCase
from workflow.config.uvh5_site import Uvh5Site


class CorrelateInput(FileInput):
    """Voltages of antennas in a file."""

    voltages: DatasetRef = Field(description=OF_ANTENNAS)


class CorrelateCase(MatrixProductCase):
    """Visibilities of all pairs of inputs, averaged over nothing: sums over each integration."""

    kind: Literal["correlate"]
    channels: int = Field(1, ge=1, le=1 << 20, description="Frequency channels.")
    polarizations: int = Field(1, ge=1, le=4, description="Polarizations.")
    antennas: int | None = Field(None, ge=1, le=1 << 20, description="Antennas of the array.")
    samples: int | None = Field(None, ge=1, le=1 << 28, description="Time samples of a channel.")
    integrate: int | None = Field(
        None,
        ge=1,
        le=1 << 28,
        description="Samples of an integration, a divisor of the number of samples; by default all "
        "of them.",
    )
    form: Form = Field(
        "full",
        description="Matrices of all inputs by all inputs, or the lower triangle alone: each pair "
        "once, (i, j) at i (i + 1) / 2 + j.",
    )
    uvh5: Uvh5Site | None = Field(
        None,
        description="Place and time of the observation. With them the product is written as UVH5 "
        "too.",
    )
    array: AntennaArray = Field(AntennaArray(), description="Geometry of the array.")
    frequencies: Frequencies = Field(Frequencies(), description="Centres of the channels.")
    sources: tuple[Source, ...] = Field(
        (Source(l=0.25, m=0.125, power=1.0), Source(l=-0.3, m=0.2, power=0.25)),
        description="Plane waves that arrive.",
    )
    noise: float = Field(1.0, ge=0, le=1e12, description="Power of each antenna's own noise.")
    input: CorrelateInput | None = Field(None, description="Voltages from a file.")

    @model_validator(mode="after")
    def _fits(self) -> CorrelateCase:
        self.check_sizes_or_input(
            ("antennas", "samples", "channels", "polarizations"),
            ("array", "frequencies", "sources", "noise"),
        )
        if self.uvh5 is not None and self.form != "full":
            raise ValueError(f"uvh5 may be given beside form: full alone, got {self.form!r}")
        if self.samples is not None:
            integrated(self.samples, self.integrate)
        return self
