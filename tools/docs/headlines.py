"""The answer of docs/performance.md: a call of each operation beside the fastest library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from argand import PRECISIONS

from benchmarks.harness.recorded import (
    OURS,
    Row,
    beside,
    fastest,
    plain_rows,
    read_rows,
    slowest_placement,
    timed_rows,
)
from benchmarks.overview import SIDE, exact_pairs, exact_rows
from tools.docs.exact_tables import SOLVE, SUITE
from tools.docs.gate_tables import circuit_rows, gate_rows
from tools.docs.product_tables import LARGE
from tools.docs.shown import text_table
from tools.docs.summaries import SOFTMAX
from tools.docs.transform_tables import transform_rows
from workflow.tables.readable import number

_PRODUCTS, _MODULI = ("tf32", "3xfp16", "bf16"), ("7xint8", "15xint8")
_LENGTHS, _COLUMNS, _QUBITS = (127, 1009), 4096, 6
_LIBRARIES = ("cupy", "torch")
_CIRCUITS = {
    "circuit-28q-qft": "circuit of a Fourier transform",
    "circuit-28q-random-400": "circuit of random gates",
}


class _Sized(NamedTuple):
    """A call in a record of `benchmarks.sweep --sizes`: its words here, and its columns there."""

    what: str
    size: str
    file: str
    shape: str
    kind: str
    precision: str


_SIZED = (
    _Sized(
        "Hermitian products", "64 of 2048 inputs, 4096 samples",
        "h200-herk.csv", "64x2048x4096", "complex64", "3xfp16",
    ),
    _Sized(
        "the same of int8", "64 of 2048 inputs, 4096 samples",
        "h200-herk.csv", "64x2048x4096", "int8", "exact",
    ),
    _Sized(
        "filter bank of int8", "1024 channels, 8 taps",
        "h200-channelise.csv", "1 rows, 1024 channels x 8 taps", "int8, oversampling 1", "fp32",
    ),
    _Sized(
        "power of beams, of int8", "256 channels, 64 antennas, 64 beams",
        "h200-beam-power.csv", "256 x 64 x 64 x 4096 / 16", "int8, power", "fp16",
    ),
    _Sized(
        "image", "64 channels, 128 antennas, 512 x 512 directions",
        "h200-image.csv", "1 x 64 channels x 128 antennas, 262144 directions", "complex64",
        "3xfp16",
    ),
    _Sized(
        "spectrogram", "1024 points, half of them shared",
        "h200-spectrum.csv", "1 rows, 1024 points, 512 shared", "complex64, mean of 1", "fp32",
    ),
    _Sized(
        "small Hermitian systems", "10^5 of 8 rows, 4 right-hand sides",
        "h200-hermitian.csv", "100000x8x4", "complex64", "fp32",
    ),
)  # fmt: skip


def headlines_table(data: Path) -> str:
    """Return a line for each operation: our time, its part of the limit, the fastest library's."""
    makers = _products, _softmax, _transforms, _gates, _circuits, _sized, _systems
    lines = [line for make in makers for line in make(data)]
    return text_table(lines, "what", "size", "at", "library")


def _line(
    what: str, size: str, at: str, ours: Any, library: Any, limit: float | None = None
) -> dict[str, str]:
    own, other = (float(row.get("time_us_p50") or row["time_us"]) for row in (ours, library))
    return {
        "what": what, "size": size, "at": at, "ms": number(1e-3 * own),
        "of limit (%)": "–" if limit is None else number(100 * limit),
        "library": str(library["implementation"]), "×": number(other / own),
    }  # fmt: skip


def _products(data: Path) -> Iterator[dict[str, str]]:
    size = f"{SIDE} x {SIDE} x {SIDE}"
    rows = [
        row for row in timed_rows(read_rows(data / LARGE), m=SIDE, n=SIDE, k=SIDE, batch=1)
        if row["output"] == "complex64" and row["input"] != "packed"
    ]  # fmt: skip
    own, libraries = beside(rows)
    for at in _PRODUCTS:
        ours, library = (
            min(some, key=lambda row: row["time_us_p50"])
            for some in (
                [row for row in own if (row["precision"], row["input"]) == (at, "complex64")],
                [row for row in libraries if _class_of(row) == PRECISIONS[at].peer_class],
            )
        )
        yield _line("product", size, at, ours, library, ours["limit_fraction"])
    for at, exact, library in exact_pairs(timed_rows(exact_rows(data / SUITE))):
        if at in _MODULI:
            yield _line("exact product", size, at, exact, library)


def _class_of(row: Row) -> str:
    return PRECISIONS[row["precision"]].peer_class


def _softmax(data: Path) -> Iterator[dict[str, str]]:
    for kind in ("fp32", "bf16"):
        rows = timed_rows(read_rows(data / SOFTMAX), columns=_COLUMNS, input=kind)
        ours, library = (min(own, key=lambda row: row["time_us_p50"]) for own in beside(rows))
        size = f"{ours['rows']:.0f} x {ours['columns']:.0f}"
        yield _line("softmax", size, kind, ours, library, ours["limit_fraction"])


def _transforms(data: Path) -> Iterator[dict[str, str]]:
    ours, library = (fastest(own, "n") for own in beside(timed_rows(transform_rows(data))))
    for length in _LENGTHS:
        own = ours[length,]
        yield _line(
            "transforms", f"2^27 numbers, length {length}", own["precision"], own,
            library[length,], own["limit_fraction"],
        )  # fmt: skip


def _gates(data: Path) -> Iterator[dict[str, str]]:
    ours, library = (slowest_placement(own) for own in beside(timed_rows(gate_rows(data))))
    own = ours[_QUBITS]
    yield _line(
        f"gate on {_QUBITS} qubits", "28 qubits", own["precision"], own, library[_QUBITS],
        own["limit_fraction"],
    )  # fmt: skip


def _circuits(data: Path) -> Iterator[dict[str, str]]:
    ours, library = (fastest(own, "workload") for own in beside(timed_rows(circuit_rows(data))))
    for workload, what in _CIRCUITS.items():
        own = ours[workload,]
        yield _line(what, "28 qubits", own["precision"], own, library[workload,])


def _sized(data: Path) -> Iterator[dict[str, str]]:
    for one in _SIZED:
        rows = [
            row for row in plain_rows(data / one.file)
            if (row["shape"], row["kind"]) == (one.shape, one.kind)
        ]  # fmt: skip
        (ours,) = (row for row in rows if _who(row) == (OURS, one.precision))
        library = min(
            (row for row in rows if _who(row) in [(name, "fp32") for name in _LIBRARIES]),
            key=lambda row: float(row["time_us"]),
        )
        limit = max(float(ours[name]) for name in ("of_copy", "of_real") if ours[name])
        yield _line(one.what, one.size, one.precision, ours, library, limit)


def _who(row: dict[str, str]) -> tuple[str, str]:
    return row["implementation"], row["precision"]


def _systems(data: Path) -> Iterator[dict[str, str]]:
    rows = plain_rows(data / SOLVE)
    ours, library = (
        [row for row in rows if (row["implementation"] == OURS) == own][-1] for own in (True, False)
    )
    yield _line(
        "dense system", f"{ours['shape'].split()[0]} unknowns", ours["precision"], ours, library
    )
