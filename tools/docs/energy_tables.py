"""The table of what an exact product's joules go to, from what `benchmarks.exact_energy` wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.harness.recorded import plain_rows
from workflow.tables.readable import Column, markdown_table, number

ENERGY = "h200-exact-energy.csv"
_SHARES = (Column("what", "of a call"), Column("mj", "mJ", numeric=True))


def shares_table(data: Path) -> str:
    """Return a line for each part of a call's energy, by its run's copies and waiting thread."""
    rows = {(row["what"], row["operands"]): row for row in plain_rows(data / ENERGY)}
    waiting = float(rows["one thread", ""]["power_w"])

    def beyond_waiting(row: dict[str, str]) -> float:
        """Return millijoules beyond what a waiting card takes."""
        return float(row["energy_mj"]) - 1e-3 * waiting * float(row["time_us"])

    call, product = rows["call", "normal"], rows["product", "normal"]
    far, near = (
        beyond_waiting(row) / float(row["nbytes"])
        for row in (rows["copy", "beyond L2"], rows["copy", "within L2"])
    )
    pieces = float(call["products"]) / float(product["products"])
    multiplying = pieces * (beyond_waiting(product) - far * float(product["nbytes"]))
    moving = far * float(call["nbytes"])
    standing = 1e-3 * waiting * float(call["time_us"])
    planes = float(call["nbytes"]) - _outside(call)
    lines = {
        "the waiting card, for as long as a call takes": standing,
        f"{_giga(call['nbytes'])} GB beyond L2, at {number(1e9 * far)} pJ a byte": moving,
        "multiplying, without its bytes": multiplying,
        "encoding and decoding, without their bytes": (
            float(call["energy_mj"]) - standing - moving - multiplying
        ),
        "a call": float(call["energy_mj"]),
        f"saved if {_giga(planes)} GB of planes stayed in L2, at {number(1e9 * near)} pJ a byte": (
            (far - near) * planes
        ),
    }
    found = [{"what": name, "mj": number(value)} for name, value in lines.items()]
    return markdown_table(_SHARES, found)


def _outside(call: dict[str, str]) -> float:
    """Return the bytes of the operands and the result of a call of complex64."""
    batch, m, n, k = (int(x) for x in call["shape"].split("x"))
    return 8.0 * batch * (m * k + k * n + m * n)


def _giga(nbytes: float | str) -> str:
    return number(1e-9 * float(nbytes))


ENERGY_TABLES: dict[str, Callable[[Path], str]] = {"h200-exact-energy-shares": shares_table}
"""Tables by the names that pages call them."""
