"""The parameters of dense systems."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from workflow.config.case import PRODUCT_PRECISIONS, Case
from workflow.config.file_input import DATASETS, DatasetRef, FileInput


class SolveInput(FileInput):
    """Systems in a file."""

    a: DatasetRef = Field(
        description="(batch, equation, unknown), batch missing or not; for another order `axes` "
        f"names them. {DATASETS}"
    )
    b: DatasetRef = Field(description="(batch, equation, rhs), as `a`.")
    expected: DatasetRef | None = Field(
        None,
        description="Path of known solutions, such as those of a series. Results are compared with "
        "them; nothing is computed from them.",
    )


class SolveCase(Case):
    """A x = b for a batch of matrices (batch, n, n) and right-hand sides (batch, n, rhs).

    The precision is that of the products that factor A. A and b are rounded to its type, and x is
    refined in fp64 to the backward error of that type, whatever the products were: a precision that
    does not get there has no result. LAPACK or cuSOLVER computes all of it at fp64 and fp32.
    """

    precision_names: ClassVar[tuple[str, ...]] = PRODUCT_PRECISIONS
    needs_finite: ClassVar[str] = "no x solves a system with NaN or Inf"
    takes_no_rounding: ClassVar[str] = "argand.solve rounds as its products do"
    kind: Literal["solve"]
    n: int | None = Field(None, ge=1, le=1 << 17, description="Unknowns, and equations.")
    rhs: int = Field(1, ge=1, le=1 << 20, description="Right-hand sides of each matrix.")
    batch: int = Field(1, ge=1, le=1 << 20, description="Number of matrices.")
    source: Literal["normal", "cylinder"] = Field(
        "normal",
        description="Normally distributed numbers, or the current that plane waves induce on a "
        "conducting cylinder, at n points of its surface. The right-hand sides are the directions "
        "of incidence, and the expected solution is the Mie series.",
    )
    ka: float | None = Field(
        None,
        gt=0,
        le=1e5,
        description="Wavenumber times radius of the cylinder; n = 8 ka resolves it.",
    )
    input: SolveInput | None = Field(None, description="Systems from a file instead.")

    @model_validator(mode="after")
    def _one_source(self) -> SolveCase:
        self.check_sizes_or_input(("n", "rhs", "batch"), ("source", "ka"))
        if (self.ka is None) != (self.source != "cylinder"):
            raise ValueError("ka must be given where source is cylinder, and only there")
        if self.source == "cylinder" and self.batch != 1:
            raise ValueError(f"batch must be 1 where source is cylinder, got {self.batch}")
        if self.source == "cylinder" and (self.n or 0) % 2:
            raise ValueError(f"n must be even where source is cylinder, got {self.n}")
        return self
