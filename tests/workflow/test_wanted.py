"""What was wanted of the products, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

from workflow.output.wanted import WANTS, judged


def row(implementation: str, precision: str, microseconds: float, **other: Any) -> dict[str, Any]:
    sizes = {"batch": 1.0, "m": 4096.0, "n": 4096.0, "k": 4096.0}
    return sizes | {
        "implementation": implementation, "precision": precision, "input": "complex64",
        "output": "complex64", "verified": "True", "time_us_p50": microseconds,
        "rel_frobenius": 1e-7, "limit_fraction": 0.5,
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
    wide = {"batch": 256.0, "m": 256.0, "n": 4096.0, "k": 256.0}
    for time, met in ((1800.0, "yes"), (1801.0, "no")):
        assert line([row("argand", "tf32", time, **wide)], "at most 1.8 ms")["met"] == met


def test_traffic_is_held_to_the_copy_of_its_own_run() -> None:
    """Of the fastest row, whatever the others reached by other copies."""
    thin = {"batch": 256.0, "m": 64.0, "n": 4096.0, "k": 64.0}
    slower = row("argand", "tf32", 400.0, **thin, limit_fraction=0.99)
    for reached, met in ((0.8, "yes"), (0.79, "no")):
        rows = [row("argand", "tf32", 300.0, **thin, limit_fraction=reached), slower]
        found = line(rows, "0.80 of the copy floor")
        assert (found["measured"], found["met"]) == (f"{reached:.3g}", met)
    assert judged([row("argand", "tf32", 300.0, **thin, limit_fraction=None)]) == []


def test_the_worst_error_is_held_to_its_limit() -> None:
    for error, met in ((5e-7, "yes"), (5.1e-7, "no")):
        rows = [row("argand", "3xfp16", 1.0), row("argand", "3xfp16", 2.0, rel_frobenius=error)]
        found = line(rows, "error at most 5e-07")
        assert (found["measured"], found["met"]) == (f"{error:.3g}", met)
    assert line([row("argand", "tf32", 1.0, rel_frobenius=3e-4)], "error at most 0.00031")


def test_rows_that_do_not_count() -> None:
    """Neither what is not verified, nor other results and operands, nor a want without its peer."""
    ours = row("argand", "fp16", 100.0)
    planar = row("cublaslt-planar", "fp16", 210.0, input="planar")
    assert line([ours, planar], "2 x cublaslt-planar fp16")["met"] == "yes"
    half = planar | {"output": "complex-half", "time_us_p50": 1.0}
    assert line([ours, planar, half], "2 x cublaslt-planar fp16")["measured"] == "2.1 x"
    assert judged([ours]) == []
    assert judged([ours | {"verified": "False"}, planar]) == []


def test_wants_are_there_once() -> None:
    assert len(set(WANTS)) == len(WANTS)
