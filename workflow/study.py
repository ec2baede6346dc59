"""A study: what a config says, complete, with its sweeps expanded.

`workflow.preflight.loading` reads it and needs nothing but the config. `workflow.preflight.check`
then looks at the device and at the user's files, so that whatever can be wrong is said before the
first job starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from argand import PRECISIONS
from pydantic import BaseModel, Field, InstanceOf, field_validator

from workflow.config.case import (
    DELIVERY_KEYS,
    PRODUCT_PRECISIONS,
    PrecisionName,
    known_precisions,
)
from workflow.config.file_input import FileInput
from workflow.config.mistakes import StudyError
from workflow.config.model import Model
from workflow.data import Product, Staged
from workflow.files.file_sequence import files_named
from workflow.inputs.hdf5_operands import files_beside
from workflow.shards import Shard, shards
from workflow.storage.run_folder import RESULTS
from workflow.workloads import KINDS, Case, Workload, workload_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of workloads: they become names of files."""
LONGEST_NAME = 200
"""In characters, the values of sweeps included: a file system takes 255 bytes, and temporary names,
endings and Snakemake's marks need some of them."""

_COMPUTATION = ("precisions", "rounding", "kernels", "baselines", "shards", "device_memory")
"""Keys that say how results are computed from the same operands."""
_LONGEST_VALUE = 80
"""Characters of a value of `Study.parameters`, before its checksum where it has more."""

_NO_MARKUP = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&'`"}
"""JSON has these characters within strings alone, where such an escape means the same."""


class Settings(Model):
    """Settings of a whole study; a workload may differ in its precisions and baselines."""

    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device that computes; `auto` is a GPU where one answers, else the CPU, and on "
        "a cluster a GPU.",
    )
    seed: int = Field(
        20260101,
        ge=0,
        description="Seed of all random numbers; each workload derives its own from it.",
    )
    precisions: tuple[PrecisionName, ...] = Field(
        tuple(PRECISIONS),
        min_length=1,
        description="Precisions at which each workload that has them is measured.",
    )
    baselines: Literal["auto", "none"] | tuple[str, ...] = Field(
        "auto",
        description="Peers to measure beside ours: `auto` for all that are installed, `none`, "
        "or a list of names.",
    )
    keep_runs: bool = Field(
        False, description="Whether the results of every precision and peer are kept."
    )
    grade: bool = Field(
        False,
        description="Whether the growth of errors with k is measured and graded too, at every "
        "precision but exact integers; once for a device and its kernels.",
    )
    most_hours: float = Field(
        24.0,
        gt=0,
        le=10_000,
        description="Most hours that a run may take at the best rate of any device; a longer one "
        "is a mistake of the study.",
    )

    @field_validator("precisions")
    @classmethod
    def _precisions_exist(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return known_precisions(names, PRODUCT_PRECISIONS)


class Study(Settings):
    """A whole study. Every case has its precisions and baselines filled in.

    ``folder`` is where its results go, from the folder that it runs in, and ``sweeps`` has, by the
    name of a workload that is swept, the cases that it makes and the values of each: no keys of a
    config.
    """

    workloads: dict[str, InstanceOf[Case]]
    folder: Path = RESULTS
    sweeps: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The workloads in the order of the config, those of a sweep one after another."""
        return tuple(self.workloads)

    def workload(self, name: str) -> Workload:
        """Return the workload of this name.

        Raises StudyError with the choices where there is none.
        """
        return workload_of(name, self._case(name), self.seed)

    def case_json(self, name: str) -> str:
        """Return all that a workload's results depend on in the config, in one stable line.

        The order of keys, comments and other workloads do not change it, so it tells Snakemake
        which workloads a changed config concerns. `workload_from_json` is its inverse; what was not
        given stays not given. Snakemake's report shows it within a script, and escapes no HTML: the
        line has no character of markup.
        """
        return self._json(name, set())

    def staged_json(self, name: str) -> str:
        """Return `case_json` without what the operands do not depend on: how they are computed."""
        return self._json(name, {*DELIVERY_KEYS, *_COMPUTATION})

    def run_json(self, name: str) -> str:
        """Return `case_json` without what is decided when results are there: which is delivered."""
        return self._json(name, set(DELIVERY_KEYS))

    def _json(self, name: str, left_out: set[str]) -> str:
        case = self._case(name).model_dump(mode="json", exclude_unset=True, exclude=left_out)
        line = json.dumps(
            {"name": name, "seed": self.seed, "case": case}, sort_keys=True, separators=(",", ":")
        )
        return line.translate(_NO_MARKUP)

    def parameters(self, name: str) -> dict[str, str]:
        """Return the parameters that decide the numbers of a workload, as JSON by key.

        Keys of workloads whose products lead to it begin with their names. Keys that say how
        something is computed, or what becomes of it, are left out, and so are paths of files, whose
        checksums say more. A long value is cut, and ends with its checksum.
        """
        found = self._own_parameters(name)
        for other in self._leading_to(name):
            found |= {f"{other}.{key}": text for key, text in self._own_parameters(other).items()}
        return found

    def _leading_to(self, name: str) -> dict[str, None]:
        """Return the workloads whose products lead to one, in the order of `chain`."""
        found: dict[str, None] = {}
        for other in self.upstream(name):
            found |= {**self._leading_to(other), other: None}
        return found

    def _own_parameters(self, name: str) -> dict[str, str]:
        left_out = {*_COMPUTATION, *DELIVERY_KEYS}
        found = {}
        for key, value in self._case(name).model_dump(mode="json", exclude=left_out).items():
            inner = value if isinstance(value, dict) else {"": value}
            for part, one in inner.items():
                if part != "file":
                    text = json.dumps(one, sort_keys=True).translate(_NO_MARKUP)
                    found[f"{key}.{part}".rstrip(".")] = _shortened(text)
        return found

    def as_read(self) -> str:
        """Return the study in one line of JSON, sweeps expanded, which reads as the same study.

        The cases of a sweep leave out keys that do nothing in them (`Case.idle_keys`).
        """
        cases = {
            name: case.model_dump(mode="json", exclude_unset=True, exclude=case.idle_keys())
            for name, case in self.workloads.items()
        }
        settings = self.model_dump(mode="json", exclude={"workloads", "folder", "sweeps"})
        return json.dumps({**settings, "workloads": cases}).translate(_NO_MARKUP)

    def sweep_json(self, name: str) -> str:
        """Return the cases of a swept workload and their values, in one line."""
        return json.dumps(self.sweeps[name]).translate(_NO_MARKUP)

    def shards(self, name: str) -> tuple[Shard, ...]:
        """Return the shards of a workload; none where it is computed whole."""
        count = self._case(name).shards
        return shards(count) if count > 1 else ()

    def parts(self, name: str) -> tuple[str, ...]:
        """Return a workload's parts, one a job: its name, or ``name/02-of-16`` for each shard."""
        return tuple(f"{name}/{shard}" for shard in self.shards(name)) or (name,)

    def part_pattern(self, name: str) -> str:
        """Return a regular expression of the names of `parts`."""
        count = len(self.shards(name))
        return re.escape(name) + (rf"/\d+-of-{count}" if count else "")

    def upstream(self, name: str) -> tuple[str, ...]:
        """Return the workloads whose products this one reads."""
        return self.workload(name).depends_on()

    def chain(self, name: str) -> tuple[str, ...]:
        """Return `case_json` of all workloads whose products lead to this one, and its own last.

        They must not lead in a circle, as the check of a study makes sure.
        """
        found: dict[str, None] = {}
        for other in self.upstream(name):
            found |= dict.fromkeys(self.chain(other))
        return (*found, self.case_json(name))

    def input_files(self, name: str) -> tuple[Path, ...]:
        """Return the user's files that a workload reads, and those that hold parts of these.

        Opens a file whose values may lie in others (``input.external``); raises InputError as
        `workflow.inputs.hdf5_operands.files_beside` does.
        """
        return tuple(dict.fromkeys(_paths(self._case(name))))

    def staged_from(self, name: str) -> list[str]:
        """Return the files that a workload is staged from; other workloads' products come last."""
        products = [self.folder / "products" / f"{other}.h5" for other in self.upstream(name)]
        return [*map(str, self.input_files(name)), *map(str, products)]

    def input_states(self, name: str) -> list[str]:
        """Return the size and the time of change of each of the user's files, in text.

        A file that takes another's place by mv, cp -p or a link may be older than what was made of
        that one, so that a comparison of times alone would pass it over.
        """
        states = [path.stat() for path in self.input_files(name) if path.exists()]
        return [f"{one.st_size} bytes, {one.st_mtime_ns} ns" for one in states]

    def _case(self, name: str) -> Case:
        if name not in self.workloads:
            raise StudyError([f"workload must be one of {list(self.names)}, got {name!r}"])
        return self.workloads[name]


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"{text[:_LONGEST_VALUE]}... (SHA-256 {sha256(text.encode()).hexdigest()[:16]})"


def _paths(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, BaseModel):
        for key, part in value:
            if isinstance(value, FileInput) and key == "file" and part is not None:
                yield from files_named(part, value.format)
            else:
                yield from _paths(part)
        if isinstance(value, FileInput):
            yield from files_beside(value)


def workload_from_json(text: str) -> Workload:
    """Return the workload that `Study.case_json` wrote down."""
    content = json.loads(text)
    model = KINDS[content["case"]["kind"]].case_type
    case = model.model_validate_json(json.dumps(content["case"]))
    return workload_of(content["name"], case, content["seed"])


def outlined(chain: Sequence[str]) -> tuple[Workload, Staged]:
    """Return the last workload of `Study.chain` and the outline of its operands."""
    products: dict[str, Product] = {}
    for text in chain[:-1]:
        workload = workload_from_json(text)
        products[workload.name] = workload.product_outline(workload.outline(products))
    last = workload_from_json(chain[-1])
    return last, last.outline(products)
