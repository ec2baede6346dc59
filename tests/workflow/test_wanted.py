"""What was wanted of the products, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

from workflow.output.wanted import WANTS, judged


def row(implementation: str, precision: str, microseconds: float, **other: Any) -> dict[str, Any]:
    sizes = {"batch": 1.0, "m": 4096.0, "n": 4096.0, "k": 4096.0}
    return sizes | {
        "implementation": implementation, "precision": precision, "input": "complex64",
        "output": "complex64", "verified": "True", "time_us_p50": microseconds,
    } | other  # fmt: skip


def line(rows: list[dict[str, Any]], wanted: str) -> dict[str, str]:
    return next(found for found in judged(rows) if found["wanted"] == wanted)


def test_a_ratio_is_the_peers_time_over_ours() -> None:
    rows = [row("argand", "tf32", 100.0), row("cublas", "tf32", 250.0)]
    found = line(rows, "2.2 x cublas tf32")
    assert (found["measured"], found["met"]) == ("2.5 x", "yes")
    rows[1]["time_us_p50"] = 219.0
    assert line(rows, "2.2 x cublas tf32")["met"] == "no"


def test_a_time_is_held_to_its_limit() -> None:
    thin = {"batch": 256.0, "m": 64.0, "n": 4096.0, "k": 64.0}
    assert judged([row("argand", "tf32", 318.0, **thin)])[0]["met"] == "yes"
    assert judged([row("argand", "tf32", 319.0, **thin)])[0]["met"] == "no"


def test_rows_that_do_not_count() -> None:
    """Neither what is not verified, nor other results and operands, nor a want without its peer."""
    ours = row("argand", "fp16", 100.0)
    planar = row("cublaslt-planar", "fp16", 210.0, input="planar")
    assert line([ours, planar], "2 x cublaslt-planar fp16")["met"] == "yes"
    half = planar | {"output": "complex-half", "time_us_p50": 1.0}
    assert line([ours, planar, half], "2 x cublaslt-planar fp16")["measured"] == "2.1 x"
    assert judged([ours]) == []
    assert judged([ours | {"verified": "False"}, planar]) == []


def test_every_want_is_one_or_the_other() -> None:
    for want in WANTS:
        assert (want.most_ms is None) != (want.least_ratio is None)
        assert (want.peer is None) == (want.least_ratio is None)
