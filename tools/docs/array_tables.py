"""The recorded tables of Hermitian products and systems, images, filter banks and readout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from tools.docs.shown import rounded
from workflow.tables.readable import Column, markdown_table, number


def _milliseconds(text: str) -> str:
    return number(1e-3 * float(text))


def _table(file: str, *own: Column) -> Callable[[Path], str]:
    """Return every row of a file, in the columns of all whole calls and these."""
    columns: Sequence[Column] = (
        Column("implementation", "implementation"),
        Column("precision", "precision"),
        Column("time_us_p50", "time (ms)", _milliseconds, numeric=True),
        *own,
    )
    return lambda data: markdown_table(columns, plain_rows(data / file))


def _readout(file: str) -> Callable[[Path], str]:
    """Return every row of the benchmark of readout, which has no precisions."""
    columns = (
        Column("call", "what"),
        Column("implementation", "implementation"),
        Column("time_us_p50", "time (ms)", _milliseconds, numeric=True),
        Column("passes", "passes", rounded, numeric=True),
        Column("speedup", "× NumPy's lines", rounded, numeric=True),
        Column("error", "error over bound", rounded, numeric=True),
    )
    return lambda data: markdown_table(columns, plain_rows(data / file))


def _spectral_errors(data: Path) -> str:
    """Return errors of spectral estimates by precision, which times of a busy CPU do not change."""
    columns = (
        Column("average", "segments of a mean"),
        Column("precision", "precision"),
        Column("rel_frobenius", "error", rounded, numeric=True),
        Column("bound", "bound", rounded, numeric=True),
        Column("noise_floor_db", "noise floor (dB)", rounded, numeric=True),
    )
    rows = plain_rows(data / "cpu-spectrum.csv")
    ours = [row for row in rows if row["implementation"] == "argand"]
    return markdown_table(columns, [row for row in ours if row["input"] == "complex64"])


_RATE = Column("tflops", "TFLOP/s", rounded, numeric=True)
ARRAY_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-herk": _table(
        "h200-herk.csv",
        _RATE,
        Column("fraction_of_real", "of cuBLAS's real product", rounded, numeric=True),
        Column("speedup", "× full product", rounded, numeric=True),
        Column("error", "error", rounded, numeric=True),
    ),
    "h200-image": _table(
        "h200-image.csv",
        _RATE,
        Column("speedup", "× CuPy", rounded, numeric=True),
        Column("componentwise", "error", rounded, numeric=True),
    ),
    "h200-beam-power": _table(
        "h200-beam-power.csv",
        Column("channels", "channels", numeric=True),
        Column("beams", "beams", numeric=True),
        Column("antennas", "antennas", numeric=True),
        Column("input", "samples"),
        Column("of_floor", "of floor", rounded, numeric=True),
        Column("over_product", "× product", rounded, numeric=True),
        Column("over_apart", "× product, detected", rounded, numeric=True),
        Column("error", "error over bound", rounded, numeric=True),
    ),
    "h200-hermitian": _table(
        "h200-hermitian.csv",
        Column("n", "n", numeric=True),
        Column("gbytes_per_s", "GB/s", rounded, numeric=True),
        Column("of_copy", "of copy", rounded, numeric=True),
        Column("speedup", "× torch", rounded, numeric=True),
        Column("error", "error over bound", rounded, numeric=True),
    ),
    "h200-readout": _readout("h200-readout.csv"),
    "cpu-readout": _readout("cpu-readout.csv"),
    "h200-channelise": _table(
        "h200-channelise.csv",
        Column("channels", "channels", numeric=True),
        Column("input", "samples"),
        Column("gbytes_per_s", "GB/s", rounded, numeric=True),
        Column("of_copy", "of copy", rounded, numeric=True),
        Column("speedup", "× CuPy", rounded, numeric=True),
        Column("error", "error over bound", rounded, numeric=True),
    ),
    "cpu-spectrum": _spectral_errors,
    "h200-spectrum": _table(
        "h200-spectrum.csv",
        Column("input", "samples"),
        Column("length", "points"),
        Column("average", "mean of"),
        Column("gbytes_per_s", "GB/s", rounded, numeric=True),
        Column("of_copy", "of copy", rounded, numeric=True),
        Column("speedup", "× CuPy", rounded, numeric=True),
        Column("rel_frobenius", "error", rounded, numeric=True),
    ),
}
"""Tables by the names that pages call them."""
