"""The roofline: what is drawn of a CSV."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from argand.runtime.measuring.ceilings import Ceilings, operand_formats

from benchmarks.gemm import roofline
from benchmarks.gemm.roofline import drawn, intensity
from benchmarks.harness.recorded import read_rows
from benchmarks.harness.rows import write_csv
from workflow.records import BenchmarkRecord

CEILINGS = Ceilings("a card", 4000.0, dict.fromkeys(operand_formats(), 400.0))


def row(who: str, precision: str, tflops: float | None, **changes: Any) -> BenchmarkRecord:
    found = {
        "workload": "gemm-4096", "batch": 1, "m": 4096, "n": 4096, "k": 4096, "verified": True,
        "input": "complex64", "output": "complex64", "time_us_p50": 1.0,
    } | changes  # fmt: skip
    rate = None if tflops is None else 1e3 * tflops / 1365
    return BenchmarkRecord(
        kind="gemm", implementation=who, precision=precision, algorithm="", device="a card",
        tflops=tflops, gbytes_per_s=rate, **found,
    )  # fmt: skip


ROWS = [
    row("argand", "tf32", 380.0), row("argand", "tf32", 390.0, input="packed"),
    row("argand", "bf16", 690.0), row("argand", "bf16", 720.0, input="complex-half"),
    row("argand", "bf16", 730.0, input="complex-half", output="complex-half"),
    row("cublas", "tf32", 170.0), row("torch-real", "tf32", 320.0),
    row("triton", "tf32", None, verified=False, reason="not run: no batch", time_us_p50=None),
    row("argand", "fp16", 900.0, verified=False, reason="wrong"),
    row("argand", "tf32", 100.0, workload="gemm-small", m=64, n=64, k=64),
]  # fmt: skip


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    write_csv(tmp_path / "gemm.csv", ROWS)
    return read_rows(tmp_path / "gemm.csv")


def test_drawn_are_ours_and_the_best_peer_of_each_precision(rows: list[dict[str, Any]]) -> None:
    assert [(r["implementation"], r["precision"], r["tflops"]) for r in drawn(rows)] == [
        ("argand", "tf32", 380.0), ("argand", "bf16", 690.0), ("argand", "bf16", 720.0),
        ("argand", "tf32", 100.0), ("torch-real", "tf32", 320.0),
    ]  # fmt: skip
    assert intensity(rows[0]) == pytest.approx(1365)


def test_the_command_writes_an_svg(tmp_path: Path) -> None:
    write_csv(tmp_path / "gemm.csv", ROWS)
    (tmp_path / "limits.json").write_text(CEILINGS.to_json())
    out = tmp_path / "roofline.svg"
    assert roofline.main([str(tmp_path / "gemm.csv"), str(tmp_path / "limits.json"), str(out)]) == 0
    root = ElementTree.parse(out).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert json.loads((tmp_path / "limits.json").read_text())["device"] == "a card"
