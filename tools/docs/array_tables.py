"""The recorded tables of Hermitian products and systems, images, signals and readout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from tools.docs.shown import rounded
from workflow.tables.readable import Column, markdown_table, number

_OURS = ("argand", "unfused")
"""Implementations whose times stand beside others'."""
_Row = dict[str, str]


def _milliseconds(text: str) -> str:
    return number(1e-3 * float(text))


_TIME = Column("time_us", "time (ms)", _milliseconds, numeric=True)
_WHO = (Column("precision", "precision"),)
_SIZES, _SAMPLES = Column("shape", "sizes"), Column("kind", "samples")
_RATE = Column("tflops", "TFLOP/s", rounded, numeric=True)
_BYTES = Column("gbytes_per_s", "GB/s", rounded, numeric=True)
_OF_COPY = Column("of_copy", "of copy", rounded, numeric=True)
_OVER_BOUND = Column("over_bound", "error over bound", rounded, numeric=True)


def _given(
    file: str, *columns: Column, beside: Mapping[str, Sequence[str]], who: Sequence[Column] = _WHO
) -> Callable[[Path], str]:
    """Return a table of our rows of a file that `benchmarks.sweep --sizes` wrote.

    Args:
        file: under docs/data/.
        columns: the columns of the sizes, then those behind ``who`` and the time.
        beside: the implementations whose time over ours a column shows, by its name.
    """
    first = [one for one in columns if one.field in ("shape", "kind")]
    shown = (*first, *who, _TIME, *(one for one in columns if one not in first))

    def table(data: Path) -> str:
        rows = [_derived(row) for row in plain_rows(data / file)]
        ours = [row for row in rows if row["implementation"] in _OURS]
        for row in ours:
            for name, others in beside.items():
                row[name] = _over(rows, row, others)
        return markdown_table(shown, ours)

    return table


def _derived(row: _Row) -> _Row:
    """Return a row with what follows from its columns: passes, and the part of its floor."""
    row |= dict(one.split("=", 1) for one in row.get("measures", "").split())
    if row.get("of_copy"):
        row["passes"] = str(1 / float(row["of_copy"]))
    parts = [row[name] for name in ("of_copy", "of_real") if row.get(name)]
    return {"of_floor": max(parts, key=float, default="")} | row


def _over(rows: Sequence[_Row], row: _Row, others: Sequence[str]) -> str:
    """Return the least time of others of a case over that of ours.

    It is of those of the same precision, where there are some.
    """
    case = [
        one for one in rows
        if one["implementation"] in others and one["time_us"]
        and (one["shape"], one["kind"]) == (row["shape"], row["kind"])
    ]  # fmt: skip
    alike = [one for one in case if one.get("precision") == row.get("precision")]
    times = [float(one["time_us"]) for one in alike or case]
    return str(min(times) / float(row["time_us"])) if times and row["time_us"] else ""


def _ratio(name: str) -> Column:
    return Column(name, name, rounded, numeric=True)


def _readout(file: str, **beside: str) -> Callable[[Path], str]:
    """Return every row of the sweep of readout, which has no precisions, beside some by heading."""
    others = {f"× {heading}": (name,) for name, heading in beside.items()}
    return _given(
        file, Column("kind", "what"), Column("passes", "passes", rounded, numeric=True),
        *map(_ratio, others), _OVER_BOUND, beside=others, who=(),
    )  # fmt: skip


def _spectral_errors(data: Path) -> str:
    """Return errors of spectral estimates by precision, which times of a busy CPU do not change."""
    columns = (
        _SAMPLES,
        Column("precision", "precision"),
        Column("error", "error", rounded, numeric=True),
        _OVER_BOUND,
        Column("noise_floor_db", "noise floor (dB)", rounded, numeric=True),
    )
    rows = [_derived(row) for row in plain_rows(data / "cpu-spectrum.csv")]
    ours = [row for row in rows if row["implementation"] == "argand"]
    return markdown_table(columns, [row for row in ours if row["kind"].startswith("complex64")])


_LINES = {"numpy lines": "NumPy's lines"}
_CUPY, _TORCH, _FULL, _ALONE, _DETECTED = (
    f"× {name}" for name in ("CuPy", "torch", "full product", "product", "product, detected")
)
ARRAY_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-herk": _given(
        "h200-herk.csv",
        _RATE,
        Column("of_real", "of cuBLAS's real product", rounded, numeric=True),
        _ratio(_FULL),
        _ratio(_CUPY),
        Column("error", "error", rounded, numeric=True),
        beside={_FULL: ("argand full",), _CUPY: ("cupy",)},
    ),
    "h200-image": _given(
        "h200-image.csv", _RATE, _ratio(_CUPY), _OVER_BOUND, beside={_CUPY: ("cupy",)}
    ),
    "h200-beam-power": _given(
        "h200-beam-power.csv",
        _SIZES,
        _SAMPLES,
        Column("of_floor", "of floor", rounded, numeric=True),
        _ratio(_ALONE),
        _ratio(_DETECTED),
        _ratio(_CUPY),
        _ratio(_TORCH),
        _OVER_BOUND,
        beside={
            _ALONE: ("argand product",), _DETECTED: ("argand product, detected",),
            _CUPY: ("cupy",), _TORCH: ("torch",),
        },
    ),
    "h200-hermitian": _given(
        "h200-hermitian.csv", _SIZES, _BYTES, _OF_COPY, _ratio(_TORCH), _OVER_BOUND,
        beside={_TORCH: ("torch",)},
    ),
    "h200-readout": _readout("h200-readout.csv", custatevec="cuStateVec", **_LINES),
    "cpu-readout": _readout("cpu-readout.csv", **_LINES),
    "h200-channelise": _given(
        "h200-channelise.csv", _SIZES, _SAMPLES, _BYTES, _OF_COPY, _ratio(_CUPY), _OVER_BOUND,
        beside={_CUPY: ("cupy",)},
    ),
    "cpu-spectrum": _spectral_errors,
    "h200-spectrum": _given(
        "h200-spectrum.csv", _SIZES, _SAMPLES, _BYTES, _OF_COPY, _ratio(_CUPY),
        Column("error", "error", rounded, numeric=True),
        beside={_CUPY: ("cupy",)}, who=(Column("implementation", "implementation"), *_WHO),
    ),
}  # fmt: skip
"""Tables by the names that pages call them."""
