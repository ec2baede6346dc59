"""The parameters of equalisers of many antennas."""

from __future__ import annotations

from typing import ClassVar, Literal

from argand.hermitian.plan import LARGEST_N
from pydantic import Field, field_validator, model_validator

from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput


class MimoInput(FileInput):
    """Channel matrices in a file."""

    channel: DatasetRef = Field(
        description="(time, frequency, receiver, transmitter), leading axes missing or not: "
        "`channel` of Wi-Fi channel state, or a dataset's path."
    )


class MimoCase(Case):
    """Symbols that transmitters sent at once, from what receivers got, for each subcarrier.

    x = (H^H H + s I)^-1 H^H y, with s = 0 for zero forcing (zf) and the noise's power for the least
    mean square error (lmmse). Products are at the precision, the systems are solved in fp64 at fp64
    and in fp32 otherwise. Symbols of QAM with Gray mapping and noise are drawn for each
    signal-to-noise ratio, the mean power that a receiver gets over that of its noise.
    """

    needs_finite: ClassVar[str] = "a channel with NaN or Inf carries no symbols"
    takes_no_rounding: ClassVar[str] = "products round in their own way"

    kind: Literal["mimo"]
    equaliser: Literal["zf", "lmmse"] = Field("lmmse", description="Method that finds the symbols.")
    qam: Literal[4, 16, 64, 256, 1024] = Field(16, description="Symbols of the constellation.")
    snr_db: tuple[float, ...] = Field(
        (0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0), min_length=1, max_length=64,
        description="Signal-to-noise ratios in dB, ascending.",
    )  # fmt: skip
    symbols: int = Field(
        64, ge=1, le=1 << 20, description="Symbols that each transmitter sends on a subcarrier."
    )
    soft_bits: bool = Field(
        False,
        description="The product is log-likelihood ratios of bits, 0 over 1, in place of symbols; "
        "the noise is the power of each transmitter's error.",
    )
    hard_bits: bool = Field(
        False,
        description="The product is the bits of the nearest symbols, 0 and 1, in place of symbols.",
    )
    receivers: int | None = Field(None, ge=1, le=1024, description="Receiving antennas.")
    transmitters: int | None = Field(
        None, ge=1, le=LARGEST_N, description="Transmitting antennas, at most the receiving ones."
    )
    subcarriers: int = Field(1, ge=1, le=1 << 16, description="Subcarriers of the channel.")
    packets: int = Field(1, ge=1, le=1 << 20, description="Times, each with a channel of its own.")
    paths: int = Field(
        4, ge=1, le=4096,
        description="Paths of the channel, each a sample later than the one before and half as "
        "strong; gains are complex normal numbers.",
    )  # fmt: skip
    input: MimoInput | None = Field(None, description="Channel matrices from a file instead.")

    @property
    def makes_bits(self) -> bool:
        """Whether the product is bits, hard or soft, and not symbols."""
        return self.soft_bits or self.hard_bits

    @field_validator("snr_db")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        if list(values) != sorted(set(values)) or not all(-60 <= x <= 100 for x in values):
            raise ValueError(f"must ascend, from -60 to 100 dB, got {list(values)}")
        return values

    @model_validator(mode="after")
    def _fits(self) -> MimoCase:
        sizes = ("receivers", "transmitters")
        self.check_sizes_or_input(sizes, ("subcarriers", "packets", "paths"))
        if (self.transmitters or 0) > (self.receivers or 1024):
            raise ValueError(
                f"transmitters must be at most the {self.receivers} receivers, got "
                f"{self.transmitters}"
            )
        if self.soft_bits and self.hard_bits:
            raise ValueError("soft_bits and hard_bits must not both be true: a product has one")
        if self.makes_bits and self.shards > 1:
            raise ValueError(
                f"shards must be 1 beside bits, got {self.shards}: those of all subcarriers and "
                "times are made at once, as the noise of soft bits is that of all"
            )
        return self
