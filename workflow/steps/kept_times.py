"""Times that are kept beside the results, for a run that computes the same again.

The results of a run are large and go once one of them is delivered. Where another one is to be
delivered they are computed again; their times are not taken again, but read from here. A file of
times belongs to one part of a study and counts for the `work` alone that it was written of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import Logger
from pathlib import Path
from typing import Annotated

from argand import Device
from argand.runtime.compile.kernel_digest import kernel_digest
from argand.runtime.files.plain_files import refuse_other
from argand.runtime.measuring.ceilings import Ceilings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workflow.config.case import DELIVERY_KEYS
from workflow.implementation import Implementation
from workflow.measuring.readings import READINGS, Readings
from workflow.shards import Shard
from workflow.storage.checked_json import CheckedJsonError, read_object, write_object
from workflow.storage.failures import reading
from workflow.storage.runs import Result
from workflow.storage.seal import sealed_digest
from workflow.versions import versions
from workflow.workloads.base import Workload

FORMAT = "2"
_ROWS = {"precisions", "rounding", "baselines"}
"""Keys of a workload that decide which rows there are, and change none of the others."""

Microseconds = Annotated[float, Field(ge=0)]
Row = tuple[str, str, str, str]
"""Implementation, precision, rounding and plan of a result."""


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class KeptRow(_Kept):
    """Measurements of one result, by the names of `Result`; times are None where none is."""

    implementation: str
    precision: str
    rounding: str
    plan_words: str
    algorithm: str
    time_us_p20: Microseconds | None
    time_us_p50: Microseconds | None
    time_us_p80: Microseconds | None
    time_us_low: Microseconds | None
    time_us_high: Microseconds | None
    settled: bool | None
    iterations: int | None
    chunks: int | None
    end_to_end_us: Microseconds | None
    predicted_us: Microseconds | None
    energy_j: float | None
    load: float | None
    clock_mhz: float | None
    throttling: str
    timestamp: str

    @property
    def row(self) -> Row:
        """The result that the times are of."""
        return self.implementation, self.precision, self.rounding, self.plan_words


KEPT = (*READINGS, "timestamp")
"""Fields of `Result` that are kept."""


class _File(_Kept):
    work: dict[str, str]
    ceilings: str
    rows: list[KeptRow]


def work(
    workload: Workload, staged: Path, device: Device, shard: Shard | None, code: str
) -> dict[str, str]:
    """Return all that decides the times of a part's rows: a file counts where all of it is equal.

    Args:
        workload: the workload and its case, without the keys that only choose among rows.
        staged: the staged file, which counts by its seal; DataError where it has none.
        device: the CPU or GPU that computes.
        shard: the shard that is computed, if it is one.
        code: the digest of the code of the run step.
    """
    case = workload.case.model_dump_json(exclude_unset=True, exclude={*_ROWS, *DELIVERY_KEYS})
    with reading(staged, alone=True):
        operands = sealed_digest(staged)
    return {
        "format": FORMAT,
        "case": case,
        "staged": operands,
        "shard": str(shard or ""),
        "device": f"{device.backend}: {device.name}",
        "code": code,
        "kernels": kernel_digest(workload.operation),
        "versions": versions(),
    }


@dataclass
class KeptTimes:
    """The times of earlier runs of one part; of nothing where there is no ``path``."""

    path: Path | None = None
    work: Mapping[str, str] = field(default_factory=dict)
    ceilings: Ceilings | None = None
    rows: dict[Row, KeptRow] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, work: Mapping[str, str], log: Logger) -> KeptTimes:
        """Return a file's times of this work; none, and a line in the log, where it has others.

        Raises NotPlainError where there is a folder, a pipe or the like in its place.
        """
        refuse_other(path)
        try:
            found = _File.model_validate(read_object(path))
            ceilings = Ceilings.from_json(found.ceilings)
        except FileNotFoundError:
            return cls(path, work)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            log.warning("%s: %s: %s; all are timed again", path, where, fault["msg"])
        except (CheckedJsonError, OSError) as error:
            log.warning("%s; all are timed again", error)
        except ValueError as error:
            log.warning("%s: ceilings: %s; all are timed again", path, error)
        else:
            other = sorted(
                key for key in {*work, *found.work} if work.get(key) != found.work.get(key)
            )
            if not other:
                return cls(path, work, ceilings, {row.row: row for row in found.rows})
            log.info("%s: of other %s, all are timed again", path, ", ".join(other))
        return cls(path, work)

    def cover(self, implementations: Sequence[Implementation]) -> bool:
        """Return whether there is a kept row for each implementation."""
        return all(
            (one.name, one.precision.name, one.rounding, one.plan_words) in self.rows
            for one in implementations
        )

    def of(self, result: Result, *, timed: bool) -> Readings | None:
        """Return the readings that are kept of a result; None where it is to be measured again.

        It is measured again where other kernels have computed it, where it was streamed and no
        longer is, or the reverse, and where no time could be taken of it before.

        Args:
            result: as it was computed just now, or why it was not.
            timed: whether it has a time, or can be timed.
        """
        kept = self.rows.get(_row_of(result))
        if (
            kept is None
            or kept.algorithm != result.algorithm
            or (kept.chunks is None) != (result.chunks is None)
            or (kept.time_us_p50 is not None) != timed
        ):
            return None
        return {name: getattr(kept, name) for name in KEPT}

    def write(self, results: Sequence[Result], ceilings: Ceilings) -> None:
        """Keep the times of a run beside those of rows that it had not."""
        if self.path is None:
            return
        names = KeptRow.model_fields
        now = [KeptRow(**{name: getattr(result, name) for name in names}) for result in results]
        rows = {**self.rows, **{row.row: row for row in now}}
        content = _File(work=dict(self.work), ceilings=ceilings.to_json(), rows=list(rows.values()))
        write_object(self.path, content.model_dump())


def _row_of(result: Result) -> Row:
    return result.implementation, result.precision, result.rounding, result.plan_words
