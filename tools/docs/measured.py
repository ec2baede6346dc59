"""What was measured of products: the rows of the benchmark's three suites."""

from __future__ import annotations

from pathlib import Path

from tools.docs.recorded import Rows, read_rows

PRODUCTS = ("h200-gemm-large.csv", "h200-gemm-batched.csv", "h200-gemm-small.csv")
"""What `benchmarks.gemm --suite` wrote for the suite of each name."""


def measured_products(data: Path) -> Rows:
    """All rows of the suites that are there. Raises FileNotFoundError where none is."""
    found = [path for name in PRODUCTS if (path := data / name).exists()]
    if not found:
        raise FileNotFoundError(f"none of {list(PRODUCTS)} is in {data}")
    return [row for path in found for row in read_rows(path)]
