"""The parameters of a filter bank."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Literal

from argand.channelise.problem import check_sizes, oversampling_of
from pydantic import Field, model_validator

from workflow.config.antenna_array import AntennaArray, Source
from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput
from workflow.config.tone import Tone


class ChanneliseInput(FileInput):
    """Samples, and coefficients where they are not designed, in a file."""

    samples: DatasetRef
    coefficients: DatasetRef | None = Field(
        None,
        description="Path of the real coefficients, taps times channels, in place of a window.",
    )


class ChanneliseCase(Case):
    """Channels of a polyphase filter bank, critically sampled or oversampled."""

    takes_no_rounding: ClassVar[str] = "argand.channelise takes none"
    kind: Literal["channelise"]
    channels: int = Field(ge=2, le=1 << 20, description="M, points of a transform.")
    taps: int = Field(8, ge=1, le=1 << 10, description="T; the filter has T M coefficients.")
    window: str | tuple[str | float, ...] = Field(
        "hamming",
        description="Window of scipy.signal.firwin, which designs the filter: a name, or [name, "
        "parameter...].",
    )
    oversampling: float | str = Field(
        1.0, description="Spectra in M samples: 1, or a fraction above it, such as 4/3."
    )
    real: bool = Field(
        False, description="Whether samples are real; then there are only channels 0 to M / 2."
    )
    shift: bool = Field(
        False, description="Whether channel 0 stands in the middle of the product's channels."
    )
    centre_hz: float | None = Field(
        None, ge=0,
        description="Frequency that is 0 in the samples, as that of a local oscillator. Where not "
        "given, the one that a file of complex samples says, else 0.",
    )  # fmt: skip
    axis: int | str | None = Field(
        None,
        description="The axis of time, by its name in `input.axes` or its place in the file; "
        "needed where there are several.",
    )
    polarizations: int = Field(1, ge=1, le=4, description="Polarizations.")
    antennas: int = Field(1, ge=1, le=1 << 16, description="Antennas.")
    samples: int | None = Field(
        None, ge=1, le=1 << 34, description="Samples of each antenna and polarization."
    )
    sample_rate_hz: float = Field(1e6, ge=1e-9, le=1e21, description="Samples a second.")
    tones: tuple[Tone, ...] = Field(
        (Tone(frequency=0.125, amplitude=1.0), Tone(frequency=0.3125, amplitude=0.01)),
        description="Complex exponentials in the samples; their real parts where samples are real.",
    )
    array: AntennaArray = Field(
        AntennaArray(), description="Geometry of the array, which `sources` need."
    )
    sources: tuple[Source, ...] = Field(
        (),
        description="Plane waves of noise as wide as the band about `centre_hz` that arrive at the "
        "array; each antenna has each of them with its delay.",
    )
    noise: float = Field(1e-4, ge=0, le=1e12, description="Power of the noise in the samples.")
    input: ChanneliseInput | None = Field(None, description="Samples from a file instead.")

    @model_validator(mode="after")
    def _fits(self) -> ChanneliseCase:
        self.check_sizes_or_input(
            ("samples", "polarizations", "antennas"),
            ("sample_rate_hz", "tones", "array", "sources", "noise"),
        )
        self.check_axis_of_input(ChanneliseInput)
        check_sizes(self.channels, self.taps)
        oversampling_of(self.oversampling, self.channels)
        if self.real and self.shift:
            raise ValueError("shift must not be given beside real: channel 0 is the lowest one")
        own = self.input is not None and self.input.coefficients is not None
        if own and "window" in self.model_fields_set:
            raise ValueError("window must not be given beside input.coefficients")
        if self.samples is not None and self.samples < self.channels * self.taps:
            raise ValueError(
                f"samples must be at least channels times taps, {self.channels * self.taps}, got "
                f"{self.samples}"
            )
        self._arriving()
        return self

    def _arriving(self) -> None:
        """Raise ValueError for sources whose phases at the antennas nothing says."""
        if not self.sources:
            if "array" in self.model_fields_set:
                raise ValueError("array must not be given without sources, which it is for")
            return
        if self.real:
            raise ValueError("sources must not be given beside real: they are complex samples")
        if self.centre <= self.sample_rate_hz / 2:
            raise ValueError(
                "centre_hz must be above half of sample_rate_hz where there are sources, "
                f"{self.sample_rate_hz / 2:g}, got {self.centre:g}"
            )

    @property
    def centre(self) -> float:
        """``centre_hz``, 0 where it is not given."""
        return self.centre_hz or 0.0

    @property
    def fraction(self) -> Fraction:
        """The oversampling."""
        return oversampling_of(self.oversampling, self.channels)
