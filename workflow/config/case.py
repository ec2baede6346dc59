"""The parameters that every workload of a study has, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS, any_precision
from pydantic import Field, PrivateAttr, WithJsonSchema, field_validator, model_validator

from workflow.config.file_input import FileInput, WorkloadInput
from workflow.config.mistakes import nearest
from workflow.config.model import Model
from workflow.config.text_forms import text_like

MAX_SHARDS = 4096
"""Shards of one workload: each is several jobs, and Snakemake holds every job in memory."""

BINARY_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MemorySize = Annotated[
    str, text_like(rf"^[1-9]\d{{0,5}}(\.\d{{1,3}})? ({'|'.join(BINARY_UNITS)})$", "'4 GiB'")
]
"""A size of memory: a number, a space and a binary unit."""

DELIVERY_KEYS = ("precision", "tolerance", "allow_unproven", "uvh5")
"""Keys of a workload that choose among its results, or what is written of them."""

PRODUCT_PRECISIONS = (*PRECISIONS, *EXACT_PRECISIONS)
"""The precisions of workloads that are matrix products."""
PrecisionName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(PRODUCT_PRECISIONS)})]
"""A name of a precision; the schema lists the choices, validators those of the kind."""


def known_precisions(
    names: tuple[str, ...], allowed: Sequence[str] = tuple(PRECISIONS)
) -> tuple[str, ...]:
    """Return the names themselves.

    Raises ValueError with the choices for unknown ones, all at once, or a repeated one.
    """
    unknown = [name for name in names if name not in allowed]
    if unknown:
        got = ", ".join(f"{name!r}{nearest(name, allowed)}" for name in unknown)
        raise ValueError(f"must be one of {list(allowed)}, got {got}")
    if len(set(names)) != len(names):
        raise ValueError(f"must name each precision once, got {list(names)}")
    return names


class Case(Model):
    """The parameters that every kind of workload has; each kind adds its own.

    ``precisions`` is what is measured, ``precision`` what the product uses: a name, or ``auto`` for
    the fastest one that verified within ``tolerance``: the relative Frobenius error against fp64,
    or what it is at most where the reference is sampled (`workflow.steps.result_choice.choose`).
    ``precision_names`` are those that the kind has.
    """

    precision_names: ClassVar[tuple[str, ...]] = tuple(PRECISIONS)
    needs_finite: ClassVar[str] = ""
    """Why a kind takes no NaN or Inf, where it never does."""
    takes_no_rounding: ClassVar[str] = ""
    """Why a kind takes no ``rounding``, where it takes none."""
    needs_value: ClassVar[Mapping[str, tuple[str, str]]] = {"tolerance": ("precision", "auto")}
    """Keys that do something at one value of another key alone, with that key and its value. Such a
    key is a mistake beside other values, unless a case of the same sweep has the value."""

    kind: str = Field(description="The computation; it decides which other keys there are.")
    precisions: tuple[PrecisionName, ...] | None = Field(
        None, min_length=1, description="Precisions to measure; the study's where not given."
    )
    precision: PrecisionName | Literal["auto"] = Field(
        "auto", description="Precision of the product: a name, or auto."
    )
    tolerance: float = Field(
        1e-5, gt=0, description="Largest relative Frobenius error of the whole result for `auto`."
    )
    rounding: dict[str, list[str] | str] = Field(
        default_factory=dict,
        description="Rounding of the terms of tf32 and 3xtf32, by precision.",
    )
    baselines: Literal["auto", "none"] | tuple[str, ...] | None = Field(
        None, description="Peers to measure beside ours; the study's where not given."
    )
    allow_unproven: bool = Field(
        False,
        description="Whether the result at an explicit `precision` becomes the product although "
        "its error bound is too wide to prove anything.",
    )
    allow_nonfinite: bool = Field(
        False, description="Whether NaN and Inf are allowed in the input."
    )
    shards: int = Field(
        1,
        ge=1,
        le=MAX_SHARDS,
        description="Number of jobs into which the workload is split along an axis; any node may "
        "take them.",
    )
    device_memory: MemorySize | None = Field(
        None,
        description="Most device memory that a job takes, such as 4 GiB; all that is free where "
        "not given. A workload that needs more is streamed in chunks.",
    )

    _synthetic: frozenset[str] = PrivateAttr(frozenset())

    @property
    def data_source(self) -> FileInput | WorkloadInput | None:
        """The data source that ``input`` names; None without it, or in a kind without that key."""
        found: FileInput | WorkloadInput | None = getattr(self, "input", None)
        return found

    @property
    def lets_nonfinite_in(self) -> bool | None:
        """Whether NaN and Inf of an input are let in; None for a kind that never does."""
        return None if self.needs_finite else self.allow_nonfinite

    def check_sizes_or_input(self, sizes: Sequence[str], drawn: Sequence[str] = ()) -> None:
        """Check that sizes come from one place: the config, or the data that ``input`` names.

        Beside an input, `parameters` omits them and the parameters of ``drawn`` data. Raises
        ValueError for a size that is missing without an input, and for a size or a parameter of
        drawn data that is given beside one.
        """
        from_file = self.data_source is not None
        for name in (*sizes, *drawn):
            if from_file and name in self.model_fields_set:
                raise ValueError(f"{name} must not be given beside input: the data are there")
            if not from_file and name in sizes and getattr(self, name) is None:
                raise ValueError(f"{name} must be given where there is no input")
        if from_file:
            self._synthetic = frozenset((*sizes, *drawn))

    def check_axis_of_input(self, file_input: type[FileInput]) -> None:
        """Raise ValueError for an ``axis`` where no data of the user's have several."""
        named = getattr(self, "axis", None) is not None
        if named and not isinstance(self.data_source, file_input):
            raise ValueError(
                "axis may be given beside an input's operands alone: others have their own"
            )

    def parameters(self) -> str:
        """Return the keys of the kind as JSON, also those that were not given, without ``input``.

        Beside an input there are none of synthetic data.
        """
        left_out = {*Case.model_fields, *self._synthetic, "input"}
        return self.model_dump_json(exclude=left_out, exclude_none=True)

    def own_precisions(self) -> tuple[str, ...]:
        """Return the precisions that the case can be measured at."""
        return self.precision_names

    @property
    def accepted_error(self) -> float:
        """Largest relative Frobenius error for `auto`: ``tolerance``, or the kind's own default."""
        return self.tolerance

    @property
    def is_exported(self) -> bool:
        """Whether the product is written as UVH5 too, by the key ``uvh5`` of kinds that have it."""
        return getattr(self, "uvh5", None) is not None

    def idle_keys(self) -> set[str]:
        """Return the keys that do nothing beside the others' values (`needs_value`)."""
        return {
            key for key, (other, value) in self.needs_value.items() if getattr(self, other) != value
        }

    def device_memory_bytes(self) -> int | None:
        """Return ``device_memory`` in bytes."""
        if self.device_memory is None:
            return None
        number, unit = self.device_memory.split()
        return int(float(number) * BINARY_UNITS[unit])

    @model_validator(mode="after")
    def _unproven_is_explicit(self) -> Case:
        if self.allow_unproven and self.precision == "auto":
            raise ValueError(
                "allow_unproven needs a precision by name: auto takes none that is not proved"
            )
        return self

    @model_validator(mode="after")
    def _rounding_is_taken(self) -> Case:
        if self.rounding and self.takes_no_rounding:
            raise ValueError(f"rounding must not be given: {self.takes_no_rounding}")
        return self

    @field_validator("precisions")
    @classmethod
    def _precisions_exist(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return names and known_precisions(names, cls.precision_names)

    @field_validator("precision")
    @classmethod
    def _precision_exists(cls, name: str) -> str:
        allowed = ["auto", *cls.precision_names]
        if name not in allowed:
            raise ValueError(f"must be one of {allowed}, got {name!r}{nearest(name, allowed)}")
        return name

    @field_validator("allow_nonfinite")
    @classmethod
    def _nonfinite_has_a_result(cls, allowed: bool) -> bool:
        if allowed and cls.needs_finite:
            raise ValueError(f"must be false, got true: {cls.needs_finite}")
        return allowed

    @field_validator("rounding")
    @classmethod
    def _rounding_exists(cls, rounding: dict[str, list[str] | str]) -> dict[str, list[str] | str]:
        for name, modes in rounding.items():
            known_precisions((name,), cls.precision_names)
            any_precision(name, modes)
        return rounding
