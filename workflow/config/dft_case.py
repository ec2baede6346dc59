"""The parameters of the kind ``dft``."""

from __future__ import annotations

from typing import Literal

from argand.dft.problem import Norm
from pydantic import Field, model_validator

from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput
from workflow.config.power_spectra_case import PowerSpectraCase
from workflow.config.tone import Tone


class DftInput(FileInput):
    """Samples, and the window where there is one, in an HDF5 file."""

    samples: DatasetRef
    window: DatasetRef | None = Field(None, description="Path of a real window.")


class DftCase(PowerSpectraCase, Case):
    """Transforms along one axis, X = (window x) F_N with F_N = exp(-2 pi i jk / N)."""

    kind: Literal["dft"]
    length: int | None = Field(None, ge=1, le=1 << 26, description="N, samples of a transform.")
    batch: int = Field(1, ge=1, le=1 << 26, description="Number of transforms.")
    window: str | tuple[str | float, ...] | None = Field(
        None,
        description=(
            "A window of scipy.signal.get_window by name, or [name, parameter...]; periodic, and "
            "none where not given."
        ),
    )
    inverse: bool = Field(False, description="Whether exp(+2 pi i jk / N) is meant.")
    norm: Norm = Field(
        "backward", description="Place of 1 / N, as in scipy.fft: backward, ortho or forward."
    )
    tones: tuple[Tone, ...] = Field(
        (Tone(frequency=0.125, amplitude=1.0), Tone(frequency=0.3125, amplitude=0.01)),
        description="Complex exponentials in the samples.",
    )
    noise: float = Field(1e-4, ge=0, le=1e12, description="Power of the noise in the samples.")
    axis: int | str | None = Field(
        None,
        description="The axis that is transformed, by its name in `input.axes` or its place in the "
        "file; needed where there are several. It is the product's last one.",
    )
    shift: bool = Field(
        False, description="Whether 0 stands in the middle of the axis that comes out."
    )
    input: DftInput | None = Field(None, description="Samples from a file instead.")

    @model_validator(mode="after")
    def _sizes(self) -> DftCase:
        drawn = ("tones", "noise", "segments", "sample_rate_hz")
        segmented = self.power and self.input is not None
        self.check_sizes_or_input(("batch",) if segmented else ("length", "batch"), drawn)
        self.check_axis_of_input(DftInput)
        if self.power:
            self._of_power()
        if self.input is not None and self.input.window is not None and self.window is not None:
            raise ValueError("window must not be given beside input.window")
        return self

    def _of_power(self) -> None:
        for name in ("inverse", "norm", "rounding"):
            if name in self.model_fields_set:
                raise ValueError(f"{name} must not be given beside power: true")
        if self.real and self.shift:
            raise ValueError("shift must not be given beside real: bin 0 is the lowest one")
        if self.length is not None:
            self.overlapping(self.length)
