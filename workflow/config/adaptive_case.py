"""The parameters of adaptive beams."""

from __future__ import annotations

from typing import ClassVar, Literal

from argand.hermitian.plan import LARGEST_N
from pydantic import Field, model_validator

from workflow.config.antenna_array import Frequencies, Source
from workflow.config.beam_grid import BeamGrid
from workflow.config.file_input import DatasetRef, FileInput


class AdaptiveInput(FileInput):
    """Covariances in a file, or of another workload."""

    covariances: DatasetRef = Field(
        description="(time, polarization, frequency, antenna, column), leading axes missing or "
        "not, x of the antenna times conj(x) of the column: `covariance` of `format: uvh5`, a "
        "dataset's path, or {workload: name}. Covariances are averaged over all times. Without "
        "`weights`, its coordinates must have frequency (Hz, MHz, ...), and east and north of the "
        "antennas (m, km, ...), up where they are not in one plane."
    )
    weights: DatasetRef | None = Field(
        None,
        description="(frequency, polarization, beam, antenna), the weights that steer each beam, "
        "as in beamforming. Without them, `beams` of the grid of `extent` are steered.",
    )


class AdaptiveCase(BeamGrid):
    """Weights of beams with the least power that leave a wave from each beam's direction as it is.

    Minimum variance without distortion (MVDR, Capon): for weights c that steer a beam,
    w = c R^-1 / (c R^-1 c^H), with R the covariance plus `loading` times its mean diagonal. Beams
    are w times samples, as of kind beamforming, which takes the product as its weights. All is
    computed in fp64 at fp64 and in fp32 otherwise; below fp32, covariances are first rounded to
    what an operand of the precision holds.
    """

    needs_finite: ClassVar[str] = "a covariance with NaN or Inf has no weights"
    takes_no_rounding: ClassVar[str] = "each precision rounds in its own way"

    kind: Literal["adaptive"]
    beams: int | None = Field(None, ge=1, le=1 << 16, description="Beams formed.")
    loading: float = Field(
        0.01, ge=0, le=1e6, description="Diagonal loading, relative to the mean of the diagonal."
    )
    antennas: int | None = Field(
        None, ge=1, le=LARGEST_N, description="Antennas of the simulated array."
    )
    channels: int = Field(1, ge=1, le=1 << 20, description="Frequency channels.")
    samples: int = Field(
        256, ge=1, le=1 << 24, description="Time samples that a covariance averages."
    )
    frequencies: Frequencies = Field(Frequencies(), description="Centres of the channels.")
    sources: tuple[Source, ...] = Field(
        (Source(l=0.3, m=0.1, power=30.0), Source(l=-0.2, m=0.35, power=10.0)),
        description="Plane waves that arrive, which beams suppress.",
    )
    noise: float = Field(1.0, ge=0, le=1e12, description="Power of each antenna's own noise.")
    input: AdaptiveInput | None = Field(None, description="Covariances from a file instead.")

    @model_validator(mode="after")
    def _fits(self) -> AdaptiveCase:
        drawn = ("channels", "samples", "array", "frequencies", "sources", "noise")
        self.check_sizes_or_input(("antennas",), drawn)
        given = self.input is not None and self.input.weights is not None
        if given and ({"beams", "extent", "phase_centre"} & self.model_fields_set):
            raise ValueError(
                "beams, extent and phase_centre must not be given beside input.weights"
            )
        if not given and self.beams is None:
            raise ValueError("beams must be given where input.weights is not: their number")
        if not given:
            self.check_above_horizon()
        return self
