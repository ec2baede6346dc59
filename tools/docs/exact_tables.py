"""The tables of exact products, from what `benchmarks.exact` wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.exact import CHECKED, OURS, WAITED
from benchmarks.harness.recorded import plain_rows
from tools.docs.shown import rounded, text_table
from workflow.tables.readable import Column, markdown_table, number

SUITE, DRAWN = "h200-exact.csv", "h200-exact-drawn.csv"
LARGE, LARGE_H100 = "h200-exact-large.csv", "h100-exact-large.csv"
SOLVE = "h200-solve.csv"
"""Files that `benchmarks.exact` wrote of its suite up to 4096, of shapes drawn at random, and of
larger ones with a proof; the last is of `benchmarks.sweep solve`."""
_SIZES = ("batch", "m", "n", "k")
_SHAPE = "m x n x k"
_CUBLAS = "cublas"


def _shape(row: dict[str, str]) -> str:
    batch, *sizes = (row[name] for name in _SIZES)
    shape = "x".join(sizes)
    return shape if batch == "1" else f"{batch} x ({shape})"


def exact_table(name: str) -> Callable[[Path], str]:
    """Return a line for each shape and number of moduli of a file, with the libraries beside ours.

    Rates and ratios are those in a row of calls. Results of ours beyond their bound have no line.
    """

    def table(data: Path) -> str:
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for row in plain_rows(data / name):
            what = row["operands"] if row["implementation"] == _CUBLAS else row["precision"]
            found[_shape(row), what, row["implementation"]] = row
        lines = []
        for (shape, precision, implementation), row in found.items():
            if implementation != OURS[0] or row["within_bound"] != "True":
                continue
            beside = {
                "cuBLAS": found.get((shape, row["operands"], _CUBLAS)),
                "GEMMul8": found.get((shape, precision, "gemmul8")),
            }
            own = float(row["row_tflops"])
            line = {
                _SHAPE: shape, "precision": precision, "after idle (ms)": rounded(row["idle_ms"]),
                "in a row (ms)": rounded(row["row_ms"]), "TFLOP/s": number(own),
            }  # fmt: skip
            for library, other in beside.items():
                rate = float(other["row_tflops"]) if other else 0.0
                line[f"{library}, TFLOP/s"] = number(rate) if rate else "–"
                line[f"× {library}"] = f"{own / rate:.2f}" if rate else "–"
            line |= {
                "error": rounded(row["error_normal"]),
                "of spread": rounded(row["error_spread"]),
            }
            line |= {
                f"{library}'s": rounded(other["error_normal"]) if other else "–"
                for library, other in beside.items()
            }
            lines.append(line)
        return text_table(lines, _SHAPE, "precision")

    return table


def _measured(data: Path) -> list[dict[str, str]]:
    """Return the rows of the suite, of all sizes."""
    return [row for name in (SUITE, LARGE) for row in plain_rows(data / name)]


def exact_summary(data: Path) -> str:
    """Return a line for each shape: TFLOP/s in a row of calls, times cuBLAS at the same type."""
    rows = _measured(data)
    precisions = list(dict.fromkeys(
        row["precision"] for row in rows if row["implementation"] == "argand"
    ))  # fmt: skip
    columns = [Column("shape", _SHAPE)]
    columns += [Column(name, name, numeric=True) for name in precisions]
    shapes = dict.fromkeys(_shape(row) for row in rows)
    return markdown_table(columns, [_line(rows, shape) for shape in shapes])


def _line(rows: Sequence[dict[str, str]], shape: str) -> dict[str, str]:
    line = {"shape": shape}
    for row in rows:
        if _shape(row) == shape and row["implementation"] == "argand":
            rate, ratio = float(row["row_tflops"]), float(row["times_cublas"])
            line[row["precision"]] = f"{number(rate)} ({ratio:.2f} ×)"
    return line


def proof_table(data: Path) -> str:
    """Return a line for each product: a checked call's time over those of calls without a proof."""
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in plain_rows(data / LARGE):
        found.setdefault((_shape(row), row["precision"]), {})[row["implementation"]] = row
    lines = []
    for (shape, precision), rows in found.items():
        if CHECKED not in rows:
            continue
        ratios = {
            "waited for, after idle": (WAITED, "idle_ms"),
            "waited for, in a row": (WAITED, "row_ms"),
            "not waited for, in a row": (OURS[0], "row_ms"),
        }
        lines.append({_SHAPE: shape, "precision": precision} | {
            of: f"{float(rows[CHECKED][time]) / float(rows[name][time]):.3f}"
            for of, (name, time) in ratios.items()
        })  # fmt: skip
    return text_table(lines, _SHAPE, "precision")


def solve_table(data: Path) -> str:
    """Return a line for each system that ours and cuSOLVER solved in one run."""
    systems: dict[str, dict[bool, dict[str, str]]] = {}
    for row in plain_rows(data / SOLVE):
        n = row["shape"].split()[0]
        systems.setdefault(n, {})[row["implementation"] == "argand"] = row
    return text_table([
        {
            "n": n, "ours (ms)": number(float(both[True]["time_us"]) / 1e3),
            "cuSOLVER (ms)": number(float(both[False]["time_us"]) / 1e3),
            "×": f"{float(both[False]['time_us']) / float(both[True]['time_us']):.2f}",
            "backward error": rounded(both[True]["error"]),
            "cuSOLVER's": rounded(both[False]["error"]),
        }
        for n, both in systems.items()
        if len(both) == 2
    ])  # fmt: skip


EXACT_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-exact": exact_summary,
    "h200-exact-rows": exact_table(SUITE),
    "h200-exact-drawn": exact_table(DRAWN),
    "h200-exact-large": exact_table(LARGE),
    "h100-exact-large": exact_table(LARGE_H100),
    "h200-exact-proofs": proof_table,
    "h200-solve": solve_table,
}
"""Tables by the names that pages call them."""
