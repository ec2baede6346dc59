"""Products and rows of which there are none, for the CPU and for a GPU."""

from __future__ import annotations

import itertools

PRODUCTS = [
    (batch, m, n, k)
    for batch, m, n, k in itertools.product([(), (0,), (2,), (3, 0), (0, 3)], *[(0, 1, 3)] * 3)
    if 0 in (*batch, m, n, k)
]
"""Leading axes, m, n, k."""
ROWS = [(0, 5), (3, 0, 4), (0, 0, 3), (0, 1)]
LENGTHS = (1, 5, 31, 1009, 4096, 100_003)
"""Lengths that take every method."""
