"""The bound of an image holds where losses of all entries of R add up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from argand import PRECISIONS

from workflow.accuracy.image_bounds import image_bound

ANTENNAS = 1024


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
def test_what_a_scale_loses_of_every_entry_is_allowed(precision: str) -> None:
    """At the zenith all weights are 1, so entries that a scale makes 0 add up in phase."""
    row = PRECISIONS[precision]
    kept, lost = (
        image_bound(one, ANTENNAS, 1, 0.0, "cpu") for one in (replace(row, scaled=False), row)
    )
    assert lost - kept >= ANTENNAS**2 * row.scaled_floor
