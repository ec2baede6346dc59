"""The figure of all kernels on one page: whose rows are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from argand.runtime.measuring.ceilings import Ceilings, operand_formats

from benchmarks import overview
from benchmarks.harness.recorded import fastest, slowest_placement
from benchmarks.overview import exact_pairs, product_pairs
from benchmarks.overview import overview as draw

CEILINGS = Ceilings("a card", 4000.0, dict.fromkeys(operand_formats(), 400.0))


def row(who: str, precision: str, time: float, **changes: Any) -> dict[str, Any]:
    return {
        "implementation": who, "precision": precision, "time_us_p50": time, "verified": "True",
        "m": 4096.0, "n": 4096.0, "k": 4096.0, "batch": 1.0, "input": "complex64",
        "output": "complex64", "tflops": 1e3 / time, "rel_frobenius": 1e-7, "gbytes_per_s": 9.0,
    } | changes  # fmt: skip


PRODUCTS = [
    row("argand", "tf32", 2.0), row("argand", "tf32", 1.0, input="packed"),
    row("cublas", "tf32", 5.0), row("torch", "tf32", 4.0), row("cublas", "fp32", 20.0),
    row("argand", "3xfp16", 3.0), row("triton", "3xtf32", 9.0, input="planar"),
    row("argand", "fp16", 1.5), row("argand", "fp16", 1.2, input="complex-half"),
    row("argand", "fp16", 0.1, output="complex-half"), row("triton", "fp16", 1.4, input="planar"),
    row("triton", "fp16", 0.1, m=64.0),
    row("argand", "bf16", 1.0), row("cublaslt-planar", "bf16", 3.0, input="planar"),
]  # fmt: skip
EXACT = [
    row("cublas", "fp32", 9.0), row("argand", "7xint8", 1.0), row("gemmul8", "7xint8", 2.0),
    row("cublas", "fp64", 8.0, output="complex128"),
    row("argand", "16xint8", 4.0, output="complex128"),
]  # fmt: skip
ROWS = {
    "products": PRODUCTS,
    "exact products": EXACT,
    "transforms": [row("argand", "3xfp16", 1.0, n=97.0), row("cufft", "fp32", 3.0, n=97.0)],
    "gates": [
        row("argand", "3xfp16", 1.0, workload="gate-28q-2-low"),
        row("argand", "3xfp16", 1.1, workload="gate-28q-2-high"),
        row("custatevec", "fp32", 1.2, workload="gate-28q-2-low"),
    ],
    "softmax": [
        row(who, "fp32", 1.0, rows=512.0, columns=256.0, input=kind)
        for who in ("argand", "torch")
        for kind in ("fp32", "fp16")
    ],
}


def test_a_peer_is_the_fastest_of_the_class() -> None:
    found = {name: (a["time_us_p50"], b["time_us_p50"]) for name, a, b in product_pairs(PRODUCTS)}
    assert found == {
        "tf32": (2.0, 4.0),
        "3xfp16": (3.0, 9.0),
        "fp16": (1.2, 1.4),
        "bf16": (1.0, 1.4),
    }


def test_a_peer_of_an_exact_product_has_its_type() -> None:
    found = [(name, b["implementation"], b["precision"]) for name, _, b in exact_pairs(EXACT)]
    assert found == [("7xint8", "gemmul8", "7xint8"), ("16xint8", "cublas", "fp64")]


def test_the_fastest_of_a_key_and_the_slowest_placement() -> None:
    assert fastest(ROWS["transforms"], "n")[(97.0,)]["implementation"] == "argand"
    assert slowest_placement(ROWS["gates"][:2])[2]["time_us_p50"] == 1.1


def test_names_and_gains_are_drawn() -> None:
    figure = draw(ROWS, CEILINGS)
    texts = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {"500\n2.0 x", "250", "copy"} <= texts
    assert "a card" in figure.get_suptitle()


def test_rows_that_did_not_verify_are_not_drawn() -> None:
    wrong = [{**one, "verified": "False"} for one in ROWS["gates"]]
    with pytest.raises(ValueError, match="no verified row with a time for gates"):
        draw({**ROWS, "gates": wrong}, CEILINGS)


def test_the_command_draws_what_is_recorded(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "overview.svg"
    assert overview.main([str(root / "docs" / "data"), str(out)]) == 0
    assert ElementTree.parse(out).getroot().tag == "{http://www.w3.org/2000/svg}svg"
