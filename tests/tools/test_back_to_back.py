"""Calls one after the other: ours beside the faster of the libraries."""

from __future__ import annotations

from typing import Any

from tools.docs.back_to_back import back_to_back


def row(implementation: str, precision: str, in_turn: float | None) -> dict[str, Any]:
    return {
        "implementation": implementation, "precision": precision, "input": "complex64",
        "output": "complex64", "verified": "True", "batch": 1.0, "m": 512.0, "n": 512.0, "k": 512.0,
        "time_us_p50": 10.0, "host_us": in_turn, "back_to_back_us": in_turn,
    }  # fmt: skip


def test_the_faster_of_the_libraries_counts() -> None:
    rows = [
        row("argand", "tf32", 20),
        row("cublas", "tf32", 30),
        row("torch", "tf32", 18),
    ]
    assert back_to_back(rows) == [
        {"shape": "512x512x512", "precision": "tf32", "argand (µs)": "20.0",
         "cublas (µs)": "30.0", "torch (µs)": "18.0", "times the faster peer": "0.9"}
    ]  # fmt: skip


def test_a_line_needs_all_of_them_measured() -> None:
    ours, cublas = row("argand", "3xtf32", 30), row("cublas", "fp32", 35)
    assert back_to_back([ours, cublas]) == []
    assert back_to_back([ours, cublas, row("torch", "fp32", None)]) == []
    half = row("torch", "fp32", 34) | {"output": "complex-half"}
    assert back_to_back([ours, cublas, half]) == []
    (line,) = back_to_back([ours, cublas, row("torch", "fp32", 34)])
    assert line["times the faster peer"] == "1.13"


def test_of_older_rows_the_longer_of_card_and_host_counts() -> None:
    peers = [row("cublas", "tf32", 30), row("torch", "tf32", 18)]
    for card, host in ((24.0, 9.0), (9.0, 24.0)):
        old = {"back_to_back_us": None, "time_us_p50": card, "host_us": host}
        (line,) = back_to_back([row("argand", "tf32", 20) | old, *peers])
        assert line["argand (µs)"] == "24.0"
