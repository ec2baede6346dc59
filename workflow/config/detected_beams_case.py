"""The keys of detected beams: what detectors of an array keep in place of voltages."""

from __future__ import annotations

from argand import PRECISIONS
from argand.beam_power.problem import Detect
from pydantic import Field, model_validator

from workflow.config.matrix_product_case import MatrixProductCase


class DetectedBeamsCase(MatrixProductCase):
    """A product of beams that may be detected."""

    detect: Detect | None = Field(
        None,
        description="Sums over time that are kept in place of the beams' voltages: `power`, "
        "or `stokes` of two polarizations, I, Q, U = 2 Re(x* y) and V = 2 Im(x* y).",
    )
    integrate: int = Field(
        1,
        ge=1,
        le=1 << 28,
        description="Samples of one sum, a divisor of the number of samples; with `detect`.",
    )

    @model_validator(mode="after")
    def _detects(self) -> DetectedBeamsCase:
        if self.detect is None:
            if self.integrate != 1:
                raise ValueError(f"integrate needs detect, got {self.integrate} without")
            return self
        if self.kernels:
            raise ValueError(f"kernels must not be given with detect, got {self.kernels}")
        own = self.own_precisions()
        unknown = [name for name in self.precisions or () if name not in own]
        if unknown:
            raise ValueError(
                f"precisions with detect must be of {list(own)}, got {', '.join(unknown)}"
            )
        return self

    def own_precisions(self) -> tuple[str, ...]:
        """Return the precisions of products; with ``detect`` those without exact integers."""
        return self.precision_names if self.detect is None else tuple(PRECISIONS)
