"""The tables in README.md and docs/, from the code and from recorded measurements.

A page marks where a table goes by ``<!-- table: name -->`` and ``<!-- end -->``. Those of
precisions and devices come from `argand`; the measured ones from the CSV files under docs/data/,
which the pipeline and the benchmarks wrote. No number in them is typed.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from argand.device import ARCHITECTURES
from argand.precision import PRECISIONS, Precision

from tools.docs.attack_tables import attack_table, exceedances_table, planted_table
from tools.docs.back_to_back import back_to_back
from tools.docs.gate_tables import gate_costs_table, gate_cut_table, gates_table
from tools.docs.growth_table import growth_table, segments_table
from tools.docs.measured import measured_products
from tools.docs.recorded import read_rows, shown_columns
from tools.docs.scale_tables import scaling_table, streaming_table
from tools.docs.study_run import leases_table, steps_table
from tools.docs.transform_tables import TRANSFORM_TABLES
from workflow.records import NOT_RUN
from workflow.tables.readable import PERFORMANCE, Column, markdown_table, number

_REGION = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_tables(text: str, data: Path) -> str:
    """A page with its tables as they should be now.

    Raises KeyError for the name of a table that there is not.
    """
    return _REGION.sub(lambda found: f"{found[1]}\n{TABLES[found[2]](data)}\n{found[3]}", text)


def precisions_table(_: Path) -> str:
    """What each precision is, and on what it runs."""
    columns = [
        Column(name, name)
        for name in (
            "precision", "operands", "products", "unit roundoff", "range", "CPU", "GPU", "what",
        )
    ]  # fmt: skip
    return markdown_table(columns, [_precision_row(p) for p in PRECISIONS.values()])


def _precision_row(precision: Precision) -> dict[str, str]:
    bits = f"{precision.terms} x {precision.operand.significand} bits"
    exact = precision.exact_operands
    operand = precision.operand
    normal = f"2^{operand.min_exponent} to 2^{math.frexp(operand.largest)[1]}"
    return {
        "precision": precision.name,
        "operands": bits,
        "products": str(len(precision.products)),
        "unit roundoff": number(precision.u, scientific=True),
        "range": f"2^{precision.full_range} in a line" if precision.scaled else normal,
        "CPU": "NumPy's BLAS" if exact else "rounded as on the GPU, then BLAS",
        "GPU": f"from {precision.min_sm / 10:.1f}, {'cuBLAS' if exact else 'our kernel'}",
        "what": precision.summary,
    }


def devices_table(_: Path) -> str:
    """The GPUs that the kernels are compiled for."""
    columns = [Column(name, name) for name in ("compute capability", "compiled for", "cards")]
    rows = [
        {"compute capability": f"{a.sm / 10:.1f}", "compiled for": a.target, "cards": a.name}
        for a in ARCHITECTURES
    ]
    return markdown_table(columns, rows)


def _measured(
    name: str, keep: Callable[[dict[str, Any]], bool] = lambda row: True
) -> Callable[[Path], str]:
    def table(data: Path) -> str:
        return markdown_table(shown_columns(), [row for row in read_rows(data / name) if keep(row)])

    return table


def _percent(value: float) -> str:
    return number(100 * value)


def _whole(value: float) -> str:
    return f"{value:.0f}"


def softmax_rings_table(data: Path) -> str:
    """Of each kind and width the fastest plan that a run of `benchmarks.softmax_plans` measured."""
    with (data / "h200-softmax-rings.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["right"] == "True"]
    fastest: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: float(row["time_us"])):
        fastest.setdefault((row["kind"], row["columns"]), row)
    names = ("kind", "rows x columns", "threads x blocks", "values", "held", "time (µs)", "GB/s",
             "of copy (%)")  # fmt: skip
    numeric = names[5:]
    return markdown_table(
        [Column(name, name, numeric=name in numeric) for name in names],
        [_plan_row(fastest[key]) for key in dict.fromkeys((r["kind"], r["columns"]) for r in rows)],
    )


def _plan_row(row: dict[str, str]) -> dict[str, str]:
    whole = "whole, staged" if row["staged"] == "True" else "whole"
    if int(row.get("stages", 0)) > 0:
        whole = f"ring, lag {row['lag']}"
    return {
        "kind": row["kind"],
        "rows x columns": f"{row['rows']}x{row['columns']}",
        "threads x blocks": f"{row['row_threads']} x {row['cluster']}",
        "values": row["values"],
        "held": whole if row["resident"] == "True" else "its last tile",
        "time (µs)": number(float(row["time_us"])),
        "GB/s": number(float(row["gbytes_per_s"])),
        "of copy (%)": number(100 * float(row["of_copy"])),
    }


CONDITIONS = (
    Column("host_us", "host (µs)", number, numeric=True),
    Column("real_tflops", "real TFLOP/s", numeric=True),
    Column("fraction_of_real", "of real (%)", _percent, numeric=True),
    Column("clock_mhz", "clock (MHz)", _whole, numeric=True),
    Column("power_w", "power (W)", _whole, numeric=True),
)
"""What a benchmark's row ran beside and under."""


_KINDS = (Column("input", "operands"), Column("output", "result"))


def products_table(data: Path) -> str:
    """What was measured of products, and under which conditions."""
    columns = _with_kinds([*shown_columns(), *CONDITIONS])
    return markdown_table(columns, [row for row in measured_products(data) if row["time_us_p50"]])


def softmaxes_table(data: Path) -> str:
    """The benchmark of softmax."""
    rows = [row for row in read_rows(data / "h200-softmax.csv") if row["time_us_p50"]]
    return markdown_table(_with_kinds([*shown_columns(), *CONDITIONS[-2:]]), rows)


def _with_kinds(columns: list[Column]) -> list[Column]:
    """The columns, and after the precision the types of operands and result."""
    who = 1 + [column.field for column in columns].index("precision")
    return [*columns[:who], *_KINDS, *columns[who:]]


def back_to_back_table(data: Path) -> str:
    """Small products one after the other, beside the libraries."""
    rows = back_to_back(measured_products(data))
    names = list(rows[0]) if rows else ["shape"]
    return markdown_table([Column(name, name, numeric=i > 1) for i, name in enumerate(names)], rows)


def headline_table(data: Path) -> str:
    """Products of 4096^3, ours and what users would otherwise pick."""
    columns = [
        column for column in PERFORMANCE
        if column.field in ("implementation", "precision", "time_us_p50", "tflops", "rel_frobenius")
    ]  # fmt: skip
    rows = [
        row for row in measured_products(data)
        if row["workload"] == "gemm-batch1-m4096-n4096-k4096" and row["time_us_p50"]
        and row["input"] != "packed"
    ]  # fmt: skip
    return markdown_table(_with_kinds(columns), rows)


def left_out_table(data: Path) -> str:
    """What the benchmark of products did not measure, why, and at how many of its shapes."""
    shapes: dict[tuple[str, ...], list[str]] = {}
    for row in measured_products(data):
        if not row["time_us_p50"]:
            reason = row["reason"].removeprefix(NOT_RUN)
            key = (row["implementation"], row["precision"], row["input"] or "", reason)
            shapes.setdefault(key, []).append(row["workload"])
    if not shapes:
        return "Nothing was left out.\n"
    headings = ("implementation", "precision", "operands", "reason", "shapes")
    found = [dict(zip(headings, (*key, str(len(at))), strict=True)) for key, at in shapes.items()]
    return markdown_table([Column(name, name) for name in headings], found)


def _of(*workloads: str) -> Callable[[dict[str, Any]], bool]:
    return lambda row: row["workload"] in workloads


def ratios_table(data: Path) -> str:
    """The CPU's ratios, from `make bench`."""
    with (data / "cpu-ratios.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [Column("what", "what"), Column("ratio", "ratio", _ratio, numeric=True)]
    return markdown_table(columns, rows)


def _ratio(text: str) -> str:
    return number(float(text))


def conditions(data: Path) -> str:
    """Devices and versions that stand in the H200's records."""
    found: set[str] = set()
    for path in sorted(data.glob("h200-*.csv")):
        rows: Iterable[dict[str, Any]] = read_rows(path)
        found |= {f"- {row['device']}; {row['versions']}" for row in rows if row.get("versions")}
    return "\n".join(sorted(found)) + "\n"


def profile_table(data: Path) -> str:
    """The kernels that benchmarks/profile_gemm.sh looked at: its output as it is."""
    lines = (data / "h200-ncu.txt").read_text(encoding="utf-8").splitlines()
    header, *rows = (line.split(" | ") for line in lines)
    columns = [Column(name, name) for name in header]
    return markdown_table(columns, [dict(zip(header, row, strict=True)) for row in rows])


TABLES: dict[str, Callable[[Path], str]] = {
    "attack": attack_table,
    "planted": planted_table,
    "exceedances": exceedances_table,
    "precisions": precisions_table,
    "devices": devices_table,
    "cpu-ratios": ratios_table,
    "cpu-study": _measured("cpu-study.csv"),
    "cpu-headline": _measured("cpu-study.csv", _of("station-beams")),
    "h200-headline": headline_table,
    "h200-study": _measured("h200-study.csv"),
    "h200-study-leases": leases_table,
    "h200-study-steps": steps_table,
    "h200-gemm": products_table,
    "h200-gemm-growth": growth_table,
    "h200-gemm-segments": segments_table,
    "h200-gemm-left-out": left_out_table,
    "h200-gemm-back-to-back": back_to_back_table,
    **TRANSFORM_TABLES,
    "h200-gates": gates_table,
    "h200-gate-costs": gate_costs_table,
    "h200-gate-cut": gate_cut_table,
    "h200-softmax": softmaxes_table,
    "h200-softmax-rings": softmax_rings_table,
    "h200-ncu": profile_table,
    "h200-scaling": scaling_table,
    "h200-streaming": streaming_table,
    "h200-conditions": conditions,
}
"""Every table that a page may name."""
