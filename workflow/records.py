"""One measured case, one row of every table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from workflow.accuracy.measures import Value, every_measure, measured
from workflow.implementation import OURS
from workflow.measuring.readings import READINGS
from workflow.storage.checked_json import read_lines, write_lines


@dataclass(frozen=True, kw_only=True)
class Record:
    """One implementation at one precision on one workload.

    Field order is column order and the unit is in the name. A column that does not apply is None: a
    dft has no ``k``. Readings are those of `Measurements`, errors, bounds and the verdict those of
    `Accuracy`, which say what each is.

    Attributes:
        implementation: `OURS`, or the peer's name.
        algorithm: what ran for it, such as ``3 x cgemm``; of our products on a GPU's tensor cores
            also the kernels: family, tile and stages, how each operand came to them.
        backend: what computed it, ``cpu`` or ``cuda``.
        shards: the number of shards of a workload that was computed in shards; see
            `workflow.steps.combining` for what its times and errors then are.
        shard: which of them, such as ``02-of-16``, in the row of one shard.
        tflops: nominal operations (8 batch m n k for a product) over the median time.
        gbytes_per_s: operands read once and results written once over the median time.
        limit_fraction: time at the device's measured ceilings over the median time.
        speedup: the best baseline's median time over this one's; see `workflow.tables.ranking`.
        measures: what only this kind of result has, each a column of its own
            (`workflow.accuracy.measures`).
        tolerance: the user's, on error_limit.
        verdict: the verdict of the `Accuracy`; empty where nothing ran.
        seed: the study's, which random operands and sampled rows come from.
        source_sha256: the digests of the user's files that operands were read from; empty where
            none were.
    """

    workload: str
    kind: str
    implementation: str
    precision: str
    algorithm: str
    device: str
    backend: str = ""
    batch: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    rows: int | None = None
    columns: int | None = None
    shards: int | None = None
    shard: str = ""
    chunks: int | None = None
    iterations: int | None = None
    time_us_p20: float | None = None
    time_us_p50: float | None = None
    time_us_p80: float | None = None
    time_us_low: float | None = None
    time_us_high: float | None = None
    settled: bool | None = None
    end_to_end_us: float | None = None
    predicted_us: float | None = None
    tflops: float | None = None
    gbytes_per_s: float | None = None
    limit_fraction: float | None = None
    speedup: float | None = None
    energy_j: float | None = None
    load: float | None = None
    clock_mhz: float | None = None
    throttling: str = ""
    rel_frobenius: float | None = None
    error_limit: float | None = None
    componentwise_re: float | None = None
    componentwise_im: float | None = None
    max_row_error: float | None = None
    measures: Mapping[str, Value] = field(default_factory=dict)
    bound: float | None = None
    worst_bound: float | None = None
    ratio: float | None = None
    lines_out_of_range: int | None = None
    largest_spread: float | None = None
    tolerance: float | None = None
    verdict: str = ""
    verified: bool = False
    reason: str = ""
    reference: str = ""
    reference_rows: int | None = None
    seed: int | None = None
    source_sha256: str = ""
    kernel_digest: str = ""
    versions: str = ""
    timestamp: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether it is ours, not a peer's."""
        return self.implementation == OURS

    @classmethod
    def columns_in_order(cls) -> tuple[str, ...]:
        """Return the column names of every table, each kind's measures in place of ``measures``."""
        names = [field.name for field in fields(cls)]
        at = names.index("measures")
        return (*names[:at], *every_measure(), *names[at + 1 :])

    def row(self) -> dict[str, Any]:
        """Return the value of each column; of measures of other kinds None."""
        values = vars(self) | dict.fromkeys(every_measure()) | dict(self.measures)
        return {column: values[column] for column in self.columns_in_order()}

    @classmethod
    def from_mapping(cls, row: dict[str, Any]) -> Self:
        """Return a Record from a parsed JSON object.

        Raises ValueError for missing or unknown columns.
        """
        unknown = set(row) - set(cls.columns_in_order())
        if unknown:
            raise ValueError(f"unknown record columns {sorted(unknown)}")
        own = {column: row[column] for column in row.keys() & every_measure().keys()}
        others = {column: value for column, value in row.items() if column not in own}
        try:
            return cls(**others, measures=measured(**own))
        except TypeError as error:
            raise ValueError(f"incomplete record: {error}") from None


TIMED = (
    *(name for name in READINGS if name not in ("chunks", "predicted_us")),
    "tflops", "gbytes_per_s", "limit_fraction", "speedup",
)  # fmt: skip
"""The columns that clocks and sensors decide. Two runs of the same work differ in no others, but in
their ``timestamp``."""
NOT_RUN = "not run: "
"""Beginning of the reason of a benchmark's row that was left out for want of something."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRecord(Record):
    """One row of a benchmark: a Record, what went in and out, and the conditions it ran under.

    Attributes:
        input: ``complex64``, ``complex128``, ``complex-half`` (pairs of the precision's operand
            type), ``packed`` (B by `argand.pack`) or ``planar`` (real and imaginary part apart,
            rounded before the clock); ``real`` for softmax.
        output: ``complex64``, ``complex128`` or ``complex-half``; ``real``.
        host_us: on a GPU, the median of the time that the host takes to make a call.
        held: whether the device began with the calls when the host had made them, so that the
            times are its own; False where a call waits for the device itself.
        back_to_back_us: the time from one call to the next of up to 200 on the same operands, by
            the host's clock, the device waited for once, the median of five loops; None for calls
            of more than a millisecond.
        real_tflops: cuBLAS's real product m = n = k = 8192 of the same operand type, run for the
            same time right after.
        fraction_of_real: ``tflops`` times the products of a precision's split over ``real_tflops``.
        power_w, temperature_c: medians while the row ran; None where NVML cannot tell.
    """

    input: str = ""
    output: str = ""
    host_us: float | None = None
    held: bool | None = None
    back_to_back_us: float | None = None
    real_tflops: float | None = None
    fraction_of_real: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write one JSON object a line, then their number and SHA-256 (`checked_json`), atomically."""
    write_lines(path, [record.row() for record in records])


def read_records(path: Path) -> list[Record]:
    """Read what `write_records` wrote.

    Raises ValueError that names the file where it is cut short or damaged, and the line where one
    is not a record of this version.
    """
    records = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            records.append(Record.from_mapping(json.loads(line)))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}; delete it and run again") from None
    return records


def read_all_records(paths: Iterable[str | Path]) -> list[Record]:
    """Return the records of several files, one file after another; errors as in `read_records`."""
    return [record for path in paths for record in read_records(Path(path))]
