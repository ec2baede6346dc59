"""The keys of power spectra: the power of segments in place of a spectrum."""

from __future__ import annotations

from typing import ClassVar, Literal

from argand.spectrum.problem import WHOLE, Detrend
from argand.spectrum.window import Scaling
from pydantic import Field, model_validator

from workflow.config.model import Model


class PowerSpectraCase(Model):
    """Means of |X|^2 over groups of windowed segments: spectrograms and Welch's estimates."""

    own: ClassVar[tuple[str, ...]] = (
        "segments", "overlap", "average", "detrend", "scaling", "real", "sample_rate_hz",
    )  # fmt: skip
    """Keys that are given beside ``power: true`` alone."""
    power: bool = Field(
        False,
        description="Whether the product is the power of segments, |X|^2 in a scale of "
        "scipy.signal, in place of X. A segment has `length` samples; the whole axis of an input "
        "where none is given.",
    )
    segments: int = Field(
        1, ge=1, le=1 << 26, description="Segments in the samples that are drawn."
    )
    overlap: int | None = Field(
        None,
        ge=0,
        description="Samples that a segment shares with the next one; by default half of them.",
    )
    average: int | Literal["all"] = Field(
        1,
        description="Segments whose mean is one row of the product: 1 for a spectrogram, `all` for "
        "one row, Welch's estimate.",
    )
    detrend: Detrend | None = Field(
        None,
        description="Trend that is subtracted from each segment before the window, as in "
        "scipy.signal.welch: constant, its mean; linear, its least-squares line; null, nothing.",
    )
    scaling: Scaling = Field(
        "density",
        description="Scale of scipy.signal.welch: density, power over Hz (over cycles a sample "
        "where samples have no times); spectrum, power.",
    )
    real: bool = Field(
        False, description="Whether samples are real; then there are only bins 0 to N / 2."
    )
    sample_rate_hz: float | None = Field(
        None, ge=1e-9, le=1e21, description="Samples a second of what is drawn."
    )

    @model_validator(mode="after")
    def _fits(self) -> PowerSpectraCase:
        given = [name for name in self.own if name in self.model_fields_set]
        if given and not self.power:
            raise ValueError(f"{given[0]} may be given beside power: true alone")
        if isinstance(self.average, int) and self.average < 1:
            raise ValueError(f"average must be from 1 on, or {WHOLE!r}, got {self.average}")
        return self

    def overlapping(self, length: int) -> int:
        """Return the samples that segments share; raises ValueError where that is all of them."""
        found = length // 2 if self.overlap is None else self.overlap
        if found >= length:
            raise ValueError(f"overlap must be below length, {length}, got {found}")
        return found
