"""The shares of a call's energy, from rows whose parts are known."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tools.docs.energy_tables import ENERGY, shares_table

WAITING_W, FAR, NEAR = 100.0, 2e-7, 1e-7
"""Watts, and millijoules of a byte."""
PLANES = 1_000_000
"""Bytes of a call that are planes; its operands and its result take 8 * 3 * 100 more."""


def row(what: str, operands: str, time_us: float, mj: float, nbytes: float) -> dict[str, object]:
    return {
        "shape": "1x10x10x10", "what": what, "operands": operands, "time_us": time_us,
        "energy_mj": mj + 1e-3 * WAITING_W * time_us, "nbytes": nbytes, "products": 1,
        "power_w": WAITING_W,
    }  # fmt: skip


def test_shares_are_those_that_the_rows_were_made_of(tmp_path: Path) -> None:
    nbytes = PLANES + 8 * 3 * 100
    rows = [
        row("call", "normal", 2000, 50 + 7 + FAR * nbytes, nbytes),
        row("product", "normal", 500, 50 + FAR * 3000, 3000),
        row("copy", "beyond L2", 10, FAR * 1e6, 1e6),
        row("copy", "within L2", 10, NEAR * 1e6, 1e6),
        row("one thread", "", 1, 0, 0),
    ]
    with (tmp_path / ENERGY).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = [line.split("|")[2].strip() for line in shares_table(tmp_path).splitlines()[2:]]
    expected = [200, FAR * nbytes, 50, 7, 200 + FAR * nbytes + 57, (FAR - NEAR) * PLANES]
    assert [float(x) for x in found if x] == pytest.approx(expected, rel=0.01)
