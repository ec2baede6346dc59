"""A tone in simulated samples, as a config describes it."""

from __future__ import annotations

from pydantic import Field

from workflow.config.model import Model


class Tone(Model):
    """One complex exponential in the samples."""

    frequency: float = Field(ge=-0.5, le=1, description="Cycles per sample.")
    amplitude: float = Field(1.0, gt=0, le=1e12, description="Modulus of the tone.")
