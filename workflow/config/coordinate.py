"""Coordinates as a study gives them: by a dataset, equal steps, or the values themselves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from workflow.config.model import Model

STEPS = {"step": "", "step_s": "s", "step_hz": "Hz", "step_m": "m"}
"""The keys of a step, and the unit that each says."""

SAMPLE_RATES_HZ = (1e-9, 1e21)
"""The least and the most samples a second: times and frequencies of any number are finite."""
SampleRate = Annotated[float, Field(ge=SAMPLE_RATES_HZ[0], le=SAMPLE_RATES_HZ[1])]
StoredNumber = Annotated[float, Field(ge=-(1 << 32), le=1 << 32)]
"""A number in the range of the integers that are read, or between them."""


class RegularCoordinate(Model):
    """Equal steps from a start; the key of the step, or `units`, has the unit of both."""

    start: float = Field(default=0.0, description="Value of the first entry of the dataset's axis.")
    step: float | None = Field(default=None, description="Distance between entries in `units`.")
    step_s: float | None = Field(default=None, description="Distance between entries in s.")
    step_hz: float | None = Field(default=None, description="Distance between entries in Hz.")
    step_m: float | None = Field(default=None, description="Distance between entries in m.")
    units: str | None = Field(default=None, description="The unit, beside `step`.")
    replace: bool = Field(
        default=False,
        description="Whether they replace what the file itself says about the axis, such as wrong "
        "frequencies in a GUPPI header; for other formats than HDF5, and for products.",
    )

    @model_validator(mode="after")
    def _one_step(self) -> RegularCoordinate:
        given = [key for key in STEPS if getattr(self, key) is not None]
        if len(given) != 1 or getattr(self, given[0]) == 0:
            found = ", ".join(f"{key}: {getattr(self, key):g}" for key in given)
            raise ValueError(
                f"a coordinate must have dataset, values or one of {list(STEPS)}, which must not "
                f"be 0, got {found or 'none of them'}"
            )
        if given[0] != "step" and self.units is not None:
            raise ValueError(f"units must not be given beside {given[0]}, which has them")
        return self

    @property
    def distance(self) -> tuple[float, str]:
        """The step and its unit."""
        key = next(key for key in STEPS if getattr(self, key) is not None)
        return float(getattr(self, key)), STEPS[key] or self.units or ""


class DatasetCoordinate(Model):
    """Values in a dataset of the input's file, one for each entry of the axis."""

    dataset: str = Field(min_length=1, description="Path of the dataset.")
    units: str | None = Field(
        None, description="The unit; the dataset's attribute `units`, or its name's ending `_hz` "
        "or `_s`, where not given.",
    )  # fmt: skip
    axis: str | None = Field(
        None,
        description="The axis along which the values stand, where the coordinate has another name: "
        "l and m of a beam, positions of antennas.",
    )
    column: Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Which number to take of each entry, where the dataset has several: 0 "
        "for east in positions (antenna, 3), or (3, antenna) where there are not three antennas. "
        "For a table of compounds, the name of a field.",
    )  # fmt: skip


class ListedCoordinate(Model):
    """Values in the study itself, one for each entry of the file's axis, with their unit."""

    values: list[float | str] = Field(min_length=1, description="Numbers, or names.")
    units: str | None = Field(None, description="The unit of numbers.")
    axis: str | None = Field(
        None,
        description="The axis along which the values stand, where the coordinate has another name: "
        "east of antennas.",
    )
    replace: bool = Field(
        default=False,
        description="Whether they replace what the file itself says, as for equal steps.",
    )

    @model_validator(mode="after")
    def _numbers_with_a_unit(self) -> ListedCoordinate:
        names = [value for value in self.values if isinstance(value, str)]
        if self.units is not None and names:
            raise ValueError(
                f"values with a unit must be numbers, got {names[0]!r}; names have no units"
            )
        return self


CoordinateSource = (
    Annotated[str, StringConstraints(min_length=1)]
    | RegularCoordinate
    | DatasetCoordinate
    | ListedCoordinate
    | list[float | str]
)
"""A dataset's path, equal steps, a dataset with its unit, or the values, with a unit or without."""


def axis_of(name: str, of: CoordinateSource) -> str:
    """Return the axis along which a coordinate stands, as the study calls it."""
    axis = of.axis if isinstance(of, DatasetCoordinate | ListedCoordinate) else None
    return axis or name
