"""Small images for compute-sanitizer: ``python -m benchmarks.sanitize.image tf32``.

Arrays of less than a panel and of several, with directions that fill no block. Each array is an
allocation of its own, so that an access beyond it is one beyond what is allocated. The exit status
is 1 where a direction is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from argand import PRECISIONS, image

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program
from benchmarks.sweep.images import direct_power, most_turns
from workflow.accuracy.image_bounds import image_bound

SIZES = ((1, 1, 3), (9, 2, 70), (65, 3, 33), (131, 2, 65))
"""Antennas, channels and directions."""
_EXTENT_M = 300.0
_SEED = 1


def images(precision: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error of a direction over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    row = PRECISIONS[precision]
    backend = "cpu" if arrays is np else "cuda"
    for antennas, channels, directions in SIZES:
        v = rng.standard_normal((channels, antennas, antennas + 3, 2)).view(complex)[..., 0]
        r = (v @ v.conj().swapaxes(-1, -2)).astype(np.complex64)
        x = _EXTENT_M * rng.uniform(-1, 1, (antennas, 3))
        f = np.linspace(120e6, 180e6, channels)
        lm = rng.uniform(-0.7, 0.7, (directions, 2))
        s = np.column_stack([lm, np.sqrt(1 - (lm**2).sum(axis=1))])
        found = on_host(image(arrays.asarray(r), x, f, s, precision=precision))
        size = float((np.abs(r.real) + np.abs(r.imag)).sum())
        allowed = image_bound(row, antennas, channels, most_turns(x, f), backend) * size
        error = float(np.abs(found - direct_power(r.astype(complex), x, f, s)).max())
        yield f"{antennas} antennas, {channels} channels, {directions}", error / allowed


main = bounded_program(
    __doc__,
    ("precision", list(PRECISIONS)),
    images,
    "a direction is off by {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
