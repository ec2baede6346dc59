"""The sources of a workload's operands as a study names them: a file, or another workload."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    Field,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from workflow.config.axis_names import check_names
from workflow.config.coordinate import (
    CoordinateSource,
    DatasetCoordinate,
    ListedCoordinate,
    RegularCoordinate,
    SampleRate,
    StoredNumber,
)
from workflow.config.formats import FORMATS, HDF5
from workflow.config.mistakes import beside_products, nearest
from workflow.config.model import Model
from workflow.config.text_forms import text_like

FormatName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(FORMATS)})]
"""A name of FORMATS; the schema lists the choices, validators say them."""


Flagged = Literal["refuse", "zero", "keep"]
"""The treatment of values that a file flags as wrong."""


class DatasetSource(Model):
    """Real and imaginary part in two datasets of the same shape; without the second it is zero."""

    real: str = Field(min_length=1, description="Path of the dataset with the real part.")
    imag: str | None = Field(
        default=None,
        min_length=1,
        description="Path of the dataset with the imaginary part; zero where not given.",
    )


class PackedSource(Model):
    """A dataset of bytes, each a complex number of two 4-bit integers in two's complement."""

    int4x2: str = Field(
        min_length=1,
        description="Path of a dataset of bytes, each a complex number: the upper 4 bits are the "
        "real part, the lower 4 the imaginary part, integers from -8 to 7.",
    )


class WorkloadInput(Model):
    """Data of another workload's product."""

    workload: str = Field(description="Name of a workload of this study whose product is read.")


DATASETS = (
    "Path of a dataset, {real: path, imag: path} for separate parts, {int4x2: path} for two 4-bit "
    "integers in a byte, or {workload: name} for another workload's product."
)
OF_ANTENNAS = (
    "(frequency, polarization, antenna, time), leading axes missing or not; for another order "
    "`axes` names them. They turn as exp(2 pi i f t) (docs/kinds.md). " + DATASETS
)
"""Description of the key of voltages, by beamforming and correlate."""
_NOTHING_TO_KEEP = "what it lacks is nothing that can be kept"
_SEQUENCES = [name for name, one in FORMATS.items() if one.has_sequences]


def _not_one_file(given: str) -> str:
    """Return the message for several files in place of one."""
    return (
        f"must be one file, or a pattern where the format is one of {_SEQUENCES}; several of HDF5 "
        "are one by virtual datasets (h5py.VirtualLayout), with external: true beside it, got "
        f"{given}"
    )


DatasetRef = Annotated[
    Annotated[str, StringConstraints(min_length=1)] | DatasetSource | PackedSource | WorkloadInput,
    Field(description=DATASETS),
]
"""The place of an operand. A kind's input has one field of this type for each operand."""

EntryText = Annotated[
    str,
    text_like(
        r"^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(:\s*\d*\s*)?$|^[^:]+$",
        "'0:4096', '::2' of a step from 1 on, the name 'DE603'",
    ),
]
SelectionEntry = StrictInt | EntryText | list[StrictInt | str]
"""Selection along an axis: an index or a name (drops the axis), ``a:b:c``, or indices and names."""
Selection = list[SelectionEntry] | dict[str, SelectionEntry]
"""One entry for each axis of a dataset, or by the names of its axes."""


class FileInput(Model):
    """Operands in an HDF5 file; each kind adds a `DatasetRef` for each operand it can read."""

    file: Path | None = Field(
        default=None,
        description="HDF5 file; a relative path starts at the folder Snakemake runs in. Needed "
        "unless all operands are other workloads' products. With `format: guppi` a pattern names "
        "the files of a recording, as `scan.*.raw`.",
    )
    format: FormatName = Field(
        default=HDF5,
        description="Format of the file; of other formats than HDF5 operands name the arrays.",
    )
    select: dict[str, Selection] = Field(
        default_factory=dict,
        description=(
            "For each operand, what to take along each axis of its dataset: `:` or `a:b:c` a "
            "range, an index one value (the axis is dropped), a list of indices those values. The "
            "name of an entry stands for its index, such as an antenna's, which the file or "
            "`coordinates` say. A mapping by axis is allowed where `axes` or the file names them."
        ),
    )
    axes: dict[str, list[str]] | list[str] | None = Field(
        default=None,
        description="For each operand, the names of its dataset's axes as they lie in the file, in "
        "any order; a list alone where there is one operand. `complex` is an axis of two entries, "
        "real and imaginary part.",
    )
    coordinates: dict[str, CoordinateSource] = Field(
        default_factory=dict,
        description="For each axis, where its values come from; the dimension scales of an HDF5 "
        "dataset where not given.",
    )
    sample_rate_hz: SampleRate | None = Field(
        default=None,
        description="Samples a second along the axis `time`, or the transformed one. Among other "
        "formats than HDF5 only for a VDIF file that does not tell its own.",
    )
    units: dict[str, str] | str | None = Field(
        default=None,
        description="For each operand, the unit of its values, such as V; text alone where there "
        "is one operand. The dataset's attribute `units` where not given.",
    )
    zero_level: dict[str, StoredNumber] | StoredNumber | None = Field(
        default=None,
        description="For each operand of unsigned integers, the stored number that stands for 0, "
        "subtracted from real and imaginary parts: 128 of 8 bits in offset binary; a number alone "
        "where there is one operand. GUPPI and DADA samples are in two's complement without it.",
    )
    flagged: Flagged = Field(
        default="refuse",
        description="Treatment of values that a UVH5 file flags: `refuse` is an error where any of "
        "them is not zero, `zero` leaves them, and pairs of antennas that the file lacks, out of "
        "sums; `keep` takes them as they are. GUPPI and VDIF have no `keep`: `zero` makes samples "
        "0 that are missing between blocks, or belong to invalid or missing frames; otherwise they "
        "are an error. In HDF5 files `zero` makes NaN 0, which is left out of sums.",
    )
    external: bool = Field(
        default=False,
        description="Whether data may lie in other files that this one names: by external links, "
        "virtual datasets, raw storage.",
    )

    @field_validator("file", mode="before")
    @classmethod
    def _one_file(cls, given: object) -> object:
        if isinstance(given, list):
            raise ValueError(_not_one_file(repr(given)))
        return given

    @field_validator("format")
    @classmethod
    def _format_exists(cls, name: str) -> str:
        if name not in FORMATS:
            hint = nearest(name, FORMATS)
            raise ValueError(f"must be one of {list(FORMATS)}, got {name!r}{hint}")
        return name

    @classmethod
    def operand_names(cls) -> tuple[str, ...]:
        """Return the operands that this kind reads from a file."""
        return tuple(name for name in cls.model_fields if name not in FileInput.model_fields)

    @property
    def path(self) -> Path:
        """The file of operands that are datasets; raises ValueError where none is named."""
        if self.file is None:
            raise ValueError("input.file: missing; operands are datasets of it")
        return self.file

    def products(self) -> dict[str, str]:
        """Return the workload whose product each operand is, of those that are one."""
        found = {name: getattr(self, name) for name in self.operand_names()}
        return {n: one.workload for n, one in found.items() if isinstance(one, WorkloadInput)}

    def _named(self) -> list[str]:
        """Return the operands that the input has."""
        return [name for name in self.operand_names() if getattr(self, name) is not None]

    @model_validator(mode="after")
    def _keys_are_of_operands(self) -> FileInput:
        named = self._named()
        for key in ("select", "axes", "units", "zero_level"):
            given = getattr(self, key)
            for name in given if isinstance(given, dict) else ():
                if name not in self.operand_names():
                    raise ValueError(
                        f"{key}.{name} must be one of {list(self.operand_names())}, got {name!r}"
                    )
                if getattr(self, name) is None:
                    raise ValueError(f"{key}.{name}: there is no {name} in this input")
            if given is not None and not isinstance(given, dict) and len(named) > 1:
                raise ValueError(f"{key} must be a mapping with any of {named}, got one for all")
        for name in self.zero_level if isinstance(self.zero_level, dict) else ():
            if name in self.products():
                raise ValueError(
                    f"zero_level.{name}: must be of a dataset, and {name} is a product"
                )
        return self

    @model_validator(mode="after")
    def _datasets_are_of_a_file(self) -> FileInput:
        datasets = [name for name in self._named() if name not in self.products()]
        if datasets and self.file is None:
            raise ValueError(f"file: missing; {datasets[0]} is a dataset of it")
        if not datasets:
            for key in ("file", "sample_rate_hz", "zero_level", "flagged", "external"):
                if key in self.model_fields_set:
                    raise ValueError(beside_products(key, self.products()))
        return self

    @model_validator(mode="after")
    def _keys_fit_the_format(self) -> FileInput:
        pattern = self.file is not None and {*"*?"} & {*str(self.file)}
        if pattern and not FORMATS[self.format].has_sequences and not self.path.exists():
            raise ValueError(f"file: {_not_one_file(repr(str(self.file)))}")
        is_hdf5, of_format = self.format == HDF5, FORMATS[self.format]
        for key, allowed in (
            ("sample_rate_hz", is_hdf5 or of_format.lacks_rate),
            ("zero_level", is_hdf5 or of_format.lacks_zero),
            ("flagged", of_format.flagged),
            ("external", is_hdf5),
        ):
            if key in self.model_fields_set and not allowed:
                raise ValueError(f"{key} must not be given beside format: {self.format}")
        if of_format.flagged and self.flagged not in of_format.flagged:
            raise ValueError(
                f"flagged must be {' or '.join(of_format.flagged)} beside format: {self.format}, "
                f"got {self.flagged}: "
                + ("allow_nonfinite: true keeps NaN" if is_hdf5 else _NOTHING_TO_KEEP)
            )
        beside = "products alone" if is_hdf5 else f"format: {self.format}"
        has_datasets = is_hdf5 and self.file is not None
        for name, of in self.coordinates.items():
            if not has_datasets and isinstance(of, str | DatasetCoordinate):
                raise ValueError(
                    f"coordinates.{name} must be equal steps or values beside {beside}, without "
                    "datasets"
                )
            replaces = isinstance(of, RegularCoordinate | ListedCoordinate) and of.replace
            if has_datasets and replaces:
                raise ValueError(
                    f"coordinates.{name}.replace must not be given beside format: {HDF5}: what is "
                    "named here takes the place of what such a file has"
                )
        return self

    @model_validator(mode="after")
    def _axes_have_names(self) -> FileInput:
        for name in self.operand_names():
            check_names(f"axes.{name}", self.axes_of(name) or ())
        check_names("coordinates", self.coordinates)
        return self

    def axes_of(self, operand: str) -> list[str] | None:
        """Return the names of the axes of an operand's dataset, where the config has them."""
        return self.axes.get(operand) if isinstance(self.axes, dict) else self.axes

    def units_of(self, operand: str) -> str | None:
        """Return the unit of an operand's values, where the config has it."""
        return self.units.get(operand) if isinstance(self.units, dict) else self.units

    def zero_level_of(self, operand: str) -> float | None:
        """Return the stored number of an operand that stands for 0, where the config has it."""
        given = self.zero_level
        return given.get(operand) if isinstance(given, dict) else given


def products_in(source: FileInput | WorkloadInput | None) -> dict[str, str]:
    """Return the workloads whose products an input reads, by the config keys that name them."""
    if isinstance(source, WorkloadInput):
        return {"input.workload": source.workload}
    found = source.products() if source is not None else {}
    return {f"input.{name}.workload": workload for name, workload in found.items()}
