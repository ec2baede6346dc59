"""The short tables of docs/performance.md: whose rows they take, and what they compare."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness.recorded import slowest_placement
from tools.docs.product_tables import LARGE
from tools.docs.summaries import (
    gates_summary,
    products_summary,
    softmax_summary,
    transforms_summary,
)
from workflow.records import BenchmarkRecord

COLUMNS = BenchmarkRecord.columns_in_order()


def row(who: str, precision: str, time: float, **changes: Any) -> dict[str, Any]:
    return {
        "implementation": who, "precision": precision, "time_us_p50": time, "verified": "True",
        "rel_frobenius": 1e-7, "limit_fraction": 0.5,
    } | changes  # fmt: skip


def lines(
    folder: Path, name: str, rows: list[dict[str, Any]], table: Callable[[Path], str]
) -> list[str]:
    with (folder / name).open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return table(folder).splitlines()


def product(who: str, precision: str, time: float, *formats: str) -> dict[str, Any]:
    given, result = formats or ("complex64", "complex64")
    return row(
        who, precision, time, workload="w", batch=1, m=8, n=8, k=8, input=given, output=result,
        tflops=1e3 / time,
    )  # fmt: skip


def test_products_are_compared_on_the_same_operands(tmp_path: Path) -> None:
    rows = [
        product("argand", "tf32", 10), product("argand", "tf32", 1, "packed", "complex64"),
        product("argand", "3xfp16", 10), product("argand", "fp16", 10),
        product("argand", "fp16", 5, "complex-half", "complex-half"),
        product("cublas", "tf32", 20), product("torch", "tf32", 15),
        product("cublas", "fp32", 30), product("triton", "tf32", 8, "planar", "complex64"),
        product("triton", "fp16", 4, "planar", "complex64"),
        product("cublaslt-planar", "fp16", 6, "planar", "complex-half"),
    ]  # fmt: skip
    head, _, line, _, said = lines(tmp_path, LARGE, rows, products_summary(LARGE))
    assert head == "| m x n x k | tf32 | 3xfp16 | fp16 | fp16, halves |"
    assert line == "| 8x8x8 | 100 (1.50 ×) | 100 (3.00 ×) | 100 (0.40 ×) | 200 (1.20 ×) |"
    assert said == "Slower than on operands split beforehand: 8x8x8 at tf32 (0.80 ×)."


def test_softmax_by_size_and_kind(tmp_path: Path) -> None:
    rows = [
        row("argand", "fp32", 1, rows=4, columns=256, input="fp16", speedup=2),
        row("argand", "fp32", 1, rows=8, columns=64, input="fp32", speedup=1.5),
        row("argand", "fp32", 1, rows=8, columns=64, input="bf16", verified="False"),
        row("torch", "fp32", 1, rows=8, columns=64, input="bf16"),
    ]
    _, _, *found = lines(tmp_path, "h200-softmax.csv", rows, softmax_summary)
    assert found == ["| 8 x 64 | 50.0 (1.50 ×) | – |", "| 4 x 256 | – | 50.0 (2.00 ×) |"]


def test_transforms_by_what_ran(tmp_path: Path) -> None:
    def pair(n: int, ran: str, theirs: float) -> list[dict[str, Any]]:
        ours = row("argand", "3xfp16", 1, workload=f"n{n}", n=n, algorithm=ran)
        return [ours, row("cufft", "fp32", theirs, workload=f"n{n}", n=n)]

    for name in ("primes", "awkward"):
        lines(tmp_path, f"h200-dft-{name}.csv", [], lambda _: "")
    rows = [*pair(67, "dense: 67", 2), *pair(97, "dense: 97", 4), *pair(64, "64, cufft: fast", 1)]
    _, _, *found = lines(tmp_path, "h200-dft.csv", rows, transforms_summary)
    assert found == [
        "| cufft | 1 | 64 | 64 | 50.0 | 1.00 | 1.00e-07 | 1.00e-07 |",
        "| dense | 2 | 67 | 97 | 50.0 | 2.00 to 4.00 | 1.00e-07 | 1.00e-07 |",
    ]


def test_gates_at_their_slowest_placement(tmp_path: Path) -> None:
    rows = [
        row("argand", "3xfp16", 1000, workload="gate-28q-2-low"),
        row("argand", "3xfp16", 1100, workload="gate-28q-2-high"),
        row("custatevec", "fp32", 2200, workload="gate-28q-2-low"),
    ]
    assert slowest_placement(rows[:2])[2]["time_us_p50"] == 1100
    lines(tmp_path, "h200-gates-custatevec.csv", rows[2:], lambda _: "")
    _, _, line = lines(tmp_path, "h200-gates.csv", rows[:2], gates_summary)
    assert line == "| 2 | 1.10 | 2.20 | 50.0 | 1.00e-07 | 1.00e-07 |"
