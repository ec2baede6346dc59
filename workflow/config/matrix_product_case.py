"""The keys that kinds which are one matrix product have in common."""

from __future__ import annotations

from typing import ClassVar

from argand.gemm.families import Family, check_family
from argand.precision import any_precision
from pydantic import Field, field_validator

from workflow.config.case import PRODUCT_PRECISIONS, Case, known_precisions


class MatrixProductCase(Case):
    """A case whose results are products of `argand.gemm`, which also has exact integers."""

    precision_names: ClassVar[tuple[str, ...]] = PRODUCT_PRECISIONS
    kernels: dict[str, Family] = Field(
        default_factory=dict,
        description="Family of kernels on a GPU, by precision; the fastest where not given.",
    )

    @field_validator("kernels")
    @classmethod
    def _kernels_exist(cls, kernels: dict[str, Family]) -> dict[str, Family]:
        for name, family in kernels.items():
            known_precisions((name,), cls.precision_names)
            check_family(family, any_precision(name))
        return kernels
