"""What was measured of products: the suite, with what later runs measured anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workflow.output.recorded import Rows, read_rows


def measured_products(data: Path) -> Rows:
    """The suite of products, with what later runs measured anew.

    Small products are all of the run of their own. Of others the rows of a later run take the
    places of those of the same implementation, precision, operands and result.
    """
    small = _rows_if_there(data / "h200-gemm-small.csv")
    apart = {row["workload"] for row in small}
    found = [row for row in read_rows(data / "h200-gemm.csv") if row["workload"] not in apart]
    later = {_who(row): row for row in _rows_if_there(data / "h200-gemm-later.csv")}
    there = {_who(row) for row in found}
    added = [row for key, row in later.items() if key not in there]
    found = [later.get(_who(row), row) for row in found] + added
    order = {name: i for i, name in enumerate(dict.fromkeys(row["workload"] for row in found))}
    return sorted(found, key=lambda row: order[row["workload"]]) + small


def _rows_if_there(path: Path) -> Rows:
    return read_rows(path) if path.exists() else []


def _who(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        row[name] for name in ("workload", "implementation", "precision", "input", "output")
    )
