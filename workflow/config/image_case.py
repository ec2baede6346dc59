"""The parameters of images."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from workflow.config.antenna_array import Frequencies, Source
from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput
from workflow.config.image_grid import Directions


class ImageInput(FileInput):
    """Covariances in a file, or of another workload."""

    covariances: DatasetRef = Field(
        description="(time, polarization, frequency, antenna, column), leading axes missing or "
        "not, x of the antenna times conj(x) of the column: `covariance` of `format: uvh5`, a "
        "dataset's path, or {workload: name}. Its coordinates must have frequency (Hz, MHz, ...), "
        "and east and north of the antennas (m, km, ...), up where they are not in one plane."
    )


class ImageCase(Case):
    """Power P(d) = w(d)^H R w(d) over a grid of directions d, channels summed.

    The weights w are those of a plane wave from d at the antennas. Each time and polarization has
    an image, except along the axes that `sum` names.
    """

    takes_no_rounding: ClassVar[str] = "argand.image rounds each precision alike"
    kind: Literal["image"]
    directions: Directions = Field(description="The grid of directions.")
    sum: tuple[Literal["time", "polarization"], ...] = Field(
        (), description="Axes along which covariances are added up first."
    )
    autocorrelations: bool = Field(
        True,
        description="Whether the power of each antenna alone counts, the diagonal of R. Without it "
        "directions without a source have a power about zero, of either sign.",
    )
    antennas: int | None = Field(
        None, ge=1, le=1 << 14, description="Antennas, scattered over a disc."
    )
    radius_m: float = Field(100.0, gt=0, le=1e6, description="Radius of the disc in m.")
    channels: int = Field(1, ge=1, le=1 << 20, description="Frequency channels.")
    samples: int = Field(
        256, ge=1, le=1 << 24, description="Time samples that a covariance averages."
    )
    frequencies: Frequencies = Field(Frequencies(), description="Centres of the channels.")
    sources: tuple[Source, ...] = Field(
        (Source(l=0.1, m=0.2, power=1.0), Source(l=-0.15, m=-0.05, power=0.5)),
        description="Plane waves that arrive.",
    )
    noise: float = Field(1.0, ge=0, le=1e12, description="Power of each antenna's own noise.")
    input: ImageInput | None = Field(None, description="Covariances from a file instead.")

    @model_validator(mode="after")
    def _one_source(self) -> ImageCase:
        drawn = ("radius_m", "channels", "samples", "frequencies", "sources", "noise")
        self.check_sizes_or_input(("antennas",), drawn)
        if len(set(self.sum)) != len(self.sum):
            raise ValueError(f"sum: must name each axis once, got {list(self.sum)}")
        return self
