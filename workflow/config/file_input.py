"""How a study says where a workload's operands come from: an HDF5 file, or another workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt, StringConstraints, model_validator

from workflow.config.model import Model


class DatasetSource(Model):
    """Real and imaginary part in two datasets of the same shape."""

    real: str = Field(min_length=1, description="Path of the dataset with the real part.")
    imag: str = Field(min_length=1, description="Path of the dataset with the imaginary part.")


DatasetRef = Annotated[
    Annotated[str, StringConstraints(min_length=1)] | DatasetSource,
    Field(description="Path of a dataset, or {real: path, imag: path} for separate parts."),
]
"""Where an operand is in a file. A kind's input has one field of this type for each operand."""

SliceText = Annotated[
    str, StringConstraints(pattern=r"^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(:\s*\d*\s*)?$")
]
Selection = list[StrictInt | SliceText | list[StrictInt]]
"""One entry for each axis of a dataset: an index (drops the axis), ``a:b:c``, or indices."""


class FileInput(Model):
    """Operands in an HDF5 file; each kind adds a `DatasetRef` for each operand it can read."""

    file: Path = Field(
        description="HDF5 file; a relative path starts at the folder Snakemake runs in."
    )
    select: dict[str, Selection] = Field(
        default_factory=dict,
        description=(
            "For each operand, what to take along each axis of its dataset: `:` or `a:b:c` a "
            "range, an index one value (the axis is dropped), a list of indices those values."
        ),
    )

    external: bool = Field(
        False,
        description="Whether data may lie in other files that this one names: by external links, "
        "virtual datasets, raw storage.",
    )

    @classmethod
    def operand_names(cls) -> tuple[str, ...]:
        """The operands that this kind reads from a file."""
        return tuple(name for name in cls.model_fields if name not in FileInput.model_fields)

    @model_validator(mode="after")
    def _selects_operands(self) -> FileInput:
        for name in self.select:
            if name not in self.operand_names():
                raise ValueError(
                    f"select.{name} must be one of {list(self.operand_names())}, got {name!r}"
                )
            if getattr(self, name) is None:
                raise ValueError(f"select.{name}: there is no {name} in this input to select from")
        return self


class WorkloadInput(Model):
    """Operands made from another workload's product."""

    workload: str = Field(description="Name of a workload of this study whose product is read.")
