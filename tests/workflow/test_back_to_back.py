"""Calls one after the other: what is longer, the card's time or the host's."""

from __future__ import annotations

from typing import Any

from workflow.output.back_to_back import back_to_back


def row(implementation: str, precision: str, card: float, host: float | None) -> dict[str, Any]:
    return {
        "implementation": implementation, "precision": precision, "input": "complex64",
        "output": "complex64", "verified": "True", "batch": 1.0, "m": 512.0, "n": 512.0, "k": 512.0,
        "time_us_p50": card, "host_us": host,
    }  # fmt: skip


def test_the_longer_of_both_counts() -> None:
    rows = [
        row("argand", "tf32", 16, 20),
        row("cublas", "tf32", 30, 25),
        row("torch", "tf32", 18, 15),
    ]
    assert back_to_back(rows) == [
        {"shape": "512x512x512", "precision": "tf32", "argand (µs)": "20.0",
         "cublas (µs)": "30.0", "torch (µs)": "18.0", "times the faster peer": "0.9"}
    ]  # fmt: skip


def test_a_line_needs_all_of_them_measured() -> None:
    ours, cublas = row("argand", "3xtf32", 30, 25), row("cublas", "fp32", 35, 20)
    assert back_to_back([ours, cublas]) == []
    assert back_to_back([ours, cublas, row("torch", "fp32", 34, None)]) == []
    half = row("torch", "fp32", 34, 20) | {"output": "complex-half"}
    assert back_to_back([ours, cublas, half]) == []
    (line,) = back_to_back([ours, cublas, row("torch", "fp32", 34, 20)])
    assert line["times the faster peer"] == "1.13"
