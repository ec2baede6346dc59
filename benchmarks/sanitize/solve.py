"""Small dense systems for compute-sanitizer: ``python -m benchmarks.sanitize.solve complex64``.

Each is solved as a matrix that the library factors whole, and by several panels with exchanges of
rows in each. Each array is an allocation of its own, so that an access beyond it is one beyond what
is allocated. The exit status is 1 where a backward error is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from argand import solve

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program
from benchmarks.sweep.dense import accepted_error, backward_error

SYSTEMS = ((1, 1), (33, 3), (150, 1), (301, 5))
"""Equations and right-hand sides."""
BLOCK, PANEL = 64, 32
"""Columns of a block and of a panel, so few that these systems have several of both."""
_SEED = 1


def solutions(dtype: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (system, its backward error over what `argand.solve` accepts).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    for n, columns in SYSTEMS:
        parts = rng.standard_normal((2, n, n)), rng.standard_normal((2, n, columns))
        a, b = (np.asarray(x[0] + 1j * x[1]).astype(dtype) for x in parts)
        for block, panel in ((n, n), (BLOCK, PANEL)):
            found = solve(arrays.asarray(a), arrays.asarray(b), block=block, panel=panel)
            error = backward_error(a, on_host(found), b) / accepted_error(n, dtype)
            yield f"{n} equations, {columns} right-hand sides, panels of {panel}", error


main = bounded_program(
    __doc__,
    ("dtype", ("complex64", "complex128")),
    solutions,
    "backward error {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
