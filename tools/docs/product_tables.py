"""The tables of products, from what `benchmarks.gemm` wrote under docs/data/."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import OURS, Rows, read_rows, shape_words, timed_rows
from tools.docs.back_to_back import back_to_back
from tools.docs.shown import text_table
from workflow.records import NOT_RUN
from workflow.tables.readable import Column, markdown_table, number

LARGE, BATCHED, SMALL = "h200-gemm-large.csv", "h200-gemm-batched.csv", "h200-gemm-small.csv"
"""Files that `benchmarks.gemm --suite` wrote for the suite of each name."""


_TIMES = {
    ("argand", ""): "ours (µs)", ("argand", "packed"): "packed B (µs)",
    ("argand", "complex-half"): "halves (µs)", ("cublas", ""): "cuBLAS (µs)",
    ("torch", ""): "torch (µs)", ("torch-real", ""): "torch, real (µs)",
    ("cublaslt-planar", "planar"): "cuBLASLt, planar (µs)",
    ("triton", "planar"): "Triton, planar (µs)",
}  # fmt: skip
"""The column of an implementation and its operands, which are none where they are interleaved."""
_OF_OURS = ("TFLOP/s", "of limit (%)", "error", "bound")


def products_table(*suites: str) -> Callable[[Path], str]:
    """Return a line for each shape, precision and result: times, and what ours reach.

    Ours are those of interleaved operands where they were measured.
    """

    def table(data: Path) -> str:
        lines: dict[tuple[str, ...], dict[str, str]] = {}
        for row in timed_rows(_measured(data, *suites)):
            what = {name: row[name] for name in ("precision", "output")}
            shape = shape_words(row)
            line = lines.setdefault(
                (shape, *what.values()),
                {"m x n x k": shape, "precision": what["precision"], "result": what["output"]}
                | dict.fromkeys([*_TIMES.values(), *_OF_OURS], "–"),
            )
            operands = "" if row["input"] in ("complex64", "complex128") else row["input"]
            line[_TIMES[row["implementation"], operands]] = number(row["time_us_p50"])
            if row["implementation"] == OURS and (not operands or line["error"] == "–"):
                reached = number(row["tflops"]), number(100 * row["limit_fraction"])
                errors = (number(row[x], scientific=True) for x in ("rel_frobenius", "bound"))
                line |= zip(_OF_OURS, (*reached, *errors), strict=True)
        return text_table(list(lines.values()), "m x n x k", "precision", "result")

    return table


def _measured(data: Path, *suites: str) -> Rows:
    return [row for name in suites for row in read_rows(data / name)]


def back_to_back_table(data: Path) -> str:
    """Return small products one after the other, beside the libraries."""
    rows = back_to_back(_measured(data, SMALL))
    names = list(rows[0]) if rows else ["shape"]
    return markdown_table([Column(name, name, numeric=i > 1) for i, name in enumerate(names)], rows)


def left_out_table(data: Path) -> str:
    """Return candidates without a verified time, why, and at how many shapes."""
    shapes: dict[tuple[str, ...], list[str]] = {}
    for row in _measured(data, LARGE, BATCHED, SMALL):
        if not timed_rows([row]):
            reason = (row["reason"] or row["verdict"]).removeprefix(NOT_RUN)
            key = (row["implementation"], row["precision"], row["input"] or "", reason)
            shapes.setdefault(key, []).append(row["workload"])
    if not shapes:
        return "Nothing was left out.\n"
    headings = ("implementation", "precision", "operands", "reason", "shapes")
    found = [dict(zip(headings, (*key, str(len(at))), strict=True)) for key, at in shapes.items()]
    return markdown_table([Column(name, name) for name in headings], found)


PRODUCT_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-products-large": products_table(LARGE),
    "h200-products-batched": products_table(BATCHED),
    "h200-products-small": products_table(SMALL),
    "h200-products-left-out": left_out_table,
    "h200-products-back-to-back": back_to_back_table,
}
