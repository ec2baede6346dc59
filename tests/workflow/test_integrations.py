"""Sums of neighbouring samples along time."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.data import Coordinate
from workflow.integrations import gap_within


@pytest.mark.parametrize(
    ("times", "integrate", "said"),
    [
        ([0, 1, 2, 3, 4, 5], 3, ""),
        ([0, 1, 2, 13, 14, 15], 3, ""),  # between integrations
        ([5, 4, 3, 2, 1, 0], None, ""),
        ([0, 1.1, 1.9, 3, 4.2, 5], None, ""),
        ([0, 0, 0, 1, 1, 1], 3, ""),  # in whole seconds
        ([0, 1, 12, 13, 14, 15], 3, "1 of 2 sums span gaps: in number 0 two neighbours are 11 s "
         "apart, where most are 1"),
        ([0, 1, 2, 3, 2.5, 5], None, "1 of 1 sums span gaps: in number 0 two neighbours are -0.5 s "
         "apart, where most are 1"),
    ],
)  # fmt: skip
def test_gaps_within_sums(times: list[float], integrate: int | None, said: str) -> None:
    assert gap_within(Coordinate(np.array(times), "s"), integrate, "sum") == said
    assert gap_within(None, integrate, "sum") == ""
