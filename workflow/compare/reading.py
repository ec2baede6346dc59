"""The rows of a performance table that a comparison needs, read from a file that is not trusted."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from argand.precision import any_precision

from workflow.storage.checked_json import read_object
from workflow.storage.failures import printable
from workflow.storage.files import is_file, sha256_of

LARGEST_BYTES = 64 << 20
"""Bytes of a table: a hundred thousand rows."""
SIZES = ("batch", "m", "n", "k", "rows", "columns", "shards")
"""Columns that say how large the work of a row is; of shards times are sums, errors the worst's."""
NEEDED = (
    "workload", "implementation", "precision", "device", "verified", "time_us_p50",
    "rel_frobenius",
)  # fmt: skip
MANIFEST = "manifest.json"
TABLES = ("performance.csv", "shards.csv")
"""Tables of a results folder, in ``tables/``; only a study with shards has the second."""

Key = tuple[str, str, str, str]
"""Workload, implementation, precision, shard: what two rows are matched by."""


class TableError(ValueError):
    """A table is missing, damaged or no performance table; one printable line names it."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(printable(f"{path}: {text}"))


@dataclass(frozen=True, kw_only=True)
class Times:
    """Quantiles of a row's time in microseconds over ``iterations`` calls.

    ``low`` and ``high`` are a 95 % interval of the median, where the run recorded one.
    """

    p50: float
    p20: float | None = None
    p80: float | None = None
    low: float | None = None
    high: float | None = None
    iterations: int | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One implementation at one precision on one workload or shard, as one run measured it.

    ``times`` and ``error`` (relative Frobenius) are None where the result did not verify, and where
    it has none. A CPU's ``model`` of a GPU's precision has few times, which decide nothing.
    ``factors`` are device, seed, sources and sizes as text, ``versions`` by package, and
    ``parameters`` those of the workload by key, where a manifest beside the table has them.
    """

    workload: str
    implementation: str
    precision: str
    shard: str = ""
    verified: bool = False
    model: bool = False
    reason: str = ""
    times: Times | None = None
    error: float | None = None
    factors: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """The columns that rows are matched by."""
        return self.workload, self.implementation, self.precision, self.shard


def read_rows(path: Path) -> dict[Key, Row]:
    """Return the rows of a results folder (its performance and shards tables) or of one CSV file.

    Raises TableError that names the file where one is missing, is not a table, is cut short within
    a row, or holds what cannot be a measurement.
    """
    files, parameters = [path], {}
    if path.is_dir():
        files = [path / "tables" / name for name in TABLES]
        files = [file for file in files if file.name != TABLES[1] or is_file(file)]
        parameters = _of_manifest(path / MANIFEST, files)
    found: dict[Key, Row] = {}
    for file in files:
        for line, row in _rows(file):
            if row.key in found:
                raise TableError(file, f"line {line}: {_name(row)} appears twice")
            found[row.key] = replace(row, parameters=parameters.get(row.workload, {}))
    if not found:
        raise TableError(files[0], "the table has no rows")
    inputs = {row.workload: row.factors["input"] for row in found.values()}
    return {key: _with_inputs(row, inputs) for key, row in found.items()}


def _with_inputs(row: Row, inputs: Mapping[str, str]) -> Row:
    """Return a row with the input files of workloads whose products lead to it as factors too.

    ``inputs`` are the files of each workload; a row has the parameters of all that lead to it.
    """
    leading = {
        f"input of {name}": files
        for name, files in inputs.items()
        if f"{name}.kind" in row.parameters
    }
    return replace(row, factors={**row.factors, **leading})


def _of_manifest(manifest: Path, tables: list[Path]) -> dict[str, dict[str, str]]:
    """Return the parameters of each workload, which the folder's manifest has beside its tables.

    A folder without one, of an earlier version or of a run that failed, is read all the same.
    Raises TableError for a table that is not the one whose SHA-256 the manifest has.
    """
    if not is_file(manifest):
        return {}
    try:
        held = read_object(manifest)
    except (OSError, ValueError) as error:
        raise TableError(manifest, f"damaged ({error})") from None
    known = {Path(name).name: digest for name, digest in dict(held.get("files") or {}).items()}
    for table in tables:
        if is_file(table) and known.get(table.name, "") not in ("", sha256_of(table)):
            raise TableError(table, f"it is not the table that {manifest} lists: damaged or edited")
    return {
        name: {key: printable(value) for key, value in one.items()}
        for name, one in dict(held.get("parameters") or {}).items()
    }


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = next(reader, [])
        if missing := [name for name in NEEDED if name not in header]:
            raise TableError(path, f"no performance table: it has no columns {', '.join(missing)}")
        if len(set(header)) < len(header):
            raise TableError(path, "no performance table: a column appears twice")
        for values in reader:
            if len(values) != len(header):
                raise TableError(
                    path,
                    f"line {reader.line_num}: {len(values)} values in {len(header)} columns, so it "
                    "is cut short or damaged",
                )
            try:
                row = _row(dict(zip(header, values, strict=True)))
            except ValueError as error:
                raise TableError(path, f"line {reader.line_num}: {error}") from None
            yield reader.line_num, row
    except csv.Error as error:
        raise TableError(path, f"line {reader.line_num}: no CSV ({error})") from None


def _text(path: Path) -> str:
    if not is_file(path):
        raise TableError(path, "there must be a results folder with tables, or a performance.csv")
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise TableError(path, f"larger than any performance table ({LARGEST_BYTES >> 20} MiB)")
        text = path.read_bytes().decode("utf-8-sig")  # a spreadsheet writes a mark before
    except UnicodeDecodeError as error:
        raise TableError(path, f"no text, so it is damaged ({error})") from None
    except OSError as error:
        raise TableError(path, f"cannot be read ({error.strerror})") from None
    if text and not text.endswith("\n"):
        raise TableError(path, "its last line has no end, so it is cut short")
    return text


def _row(cells: Mapping[str, str]) -> Row:
    """Return one row; raises ValueError for a cell that no measurement writes."""
    if cells["verified"] not in ("true", "false"):
        raise ValueError(f"verified must be true or false, got {cells['verified']!r}")
    precision = any_precision(cells["precision"])
    verified = cells["verified"] == "true"
    sizes = " ".join(f"{name}={cells[name]}" for name in SIZES if cells.get(name))
    if sizes and cells.get("kind"):  # the row of a workload that failed has its kind alone
        sizes = f"kind={cells['kind']} {sizes}"
    row = Row(
        workload=cells["workload"],
        implementation=cells["implementation"],
        precision=cells["precision"],
        shard=cells.get("shard", ""),
        verified=verified,
        model=cells.get("backend") == "cpu" and not precision.exact_operands,
        reason=printable(cells.get("reason", "")),
        times=_times(cells) if verified and cells["time_us_p50"] else None,
        error=_number(cells, "rel_frobenius", zero=True) if verified else None,
        factors={
            "device": printable(cells["device"]),
            "size": printable(sizes),
            "seed": printable(cells.get("seed", "")),
            "input": printable(cells.get("source_sha256", "")),
        },
        versions=_versions(printable(cells.get("versions", ""))),
    )
    if not row.workload or not row.implementation or not "".join(row.key).isprintable():
        raise ValueError(f"workload, implementation and shard must be names, got {row.key}")
    return row


def _times(cells: Mapping[str, str]) -> Times:
    values = {
        name: _number(cells, f"time_us_{name}") for name in ("p50", "p20", "p80", "low", "high")
    }
    ordered = [values[name] for name in ("p20", "p50", "p80") if values[name] is not None]
    around = [values[name] for name in ("low", "p50", "high") if values[name] is not None]
    for several in (ordered, around):
        if several != sorted(several, key=lambda value: value or 0.0):
            raise ValueError(f"quantiles of the time must not fall, got {several}")
    iterations = _number(cells, "iterations")
    count = None if iterations is None else int(iterations)
    p50 = values.pop("p50")
    assert p50 is not None  # checked by the caller
    return Times(p50=p50, iterations=count, **values)


def _number(cells: Mapping[str, str], name: str, *, zero: bool = False) -> float | None:
    """Return a finite number above 0, or from 0 on; None for an empty cell or a missing column.

    Raises ValueError for anything else.
    """
    text = cells.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(
            f"{name} must be finite and {'not negative' if zero else 'positive'}, got {text!r}"
        )
    return value


def _versions(text: str) -> dict[str, str]:
    """Return ``name version; name version`` by name."""
    pairs = (part.strip().rpartition(" ") for part in text.split(";") if part.strip())
    return {name: version for name, _, version in pairs if name}


def _name(row: Row) -> str:
    return " ".join(part for part in row.key if part)
