"""Means over times of covariances of which some are flagged, and 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from workflow.arrays.covariances import COVARIANCES, raised_for_mean
from workflow.data import Array, Staged
from workflow.drawn import Stretched


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3])
def test_flagged_values_do_not_lessen_the_mean(axis: int | None, rng: np.random.Generator) -> None:
    """Held, and in stretches along any axis but the last: (time, feed, frequency, row, column)."""
    values = rng.standard_normal((5, 2, 3, 4, 4, 2)).astype(np.float32).view(np.complex64)[..., 0]
    flags = rng.random(values.shape) < 0.4
    flags[:, 0, 0, 1, 2] = True
    given = np.where(flags, 0, values)
    limit = 8 * np.finfo(np.float32).eps * np.abs(given).sum(axis=0).max()
    staged = Staged({"covariances": given.copy()}, {"covariances": COVARIANCES.axes})
    if axis is not None:

        def read() -> Iterator[tuple[int, Array]]:
            for start in range(0, given.shape[axis], 2):
                yield start, np.take(given, range(start, min(start + 2, given.shape[axis])), axis)

        drawn = {"covariances": Stretched(given.shape, given.dtype, axis, 2, read)}
        staged = replace(staged, operands={}, drawn=drawn)
    found = raised_for_mean(staged).held().operands["covariances"]
    assert found.dtype == given.dtype
    expected = given.sum(axis=0) / np.maximum((~flags).sum(axis=0), 1)
    # A factor, a product and a mean of five: each rounds once more.
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0, atol=limit)
