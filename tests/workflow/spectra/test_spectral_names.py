"""Names of the axes that come out of transforms and filter banks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.workflow.chained_cases import study_of


@pytest.mark.parametrize(
    ("case", "axes", "other", "expected"),
    [
        ({"kind": "channelise", "channels": 8, "taps": 4, "axis": "time"}, ["coarse", "time"],
         "frequency", "fine_frequency"),
        ({"kind": "dft", "axis": "time"}, ["coarse", "time"], "frequency", "time_frequency"),
        ({"kind": "dft", "axis": "time", "power": True, "length": 8}, ["coarse", "time"],
         "frequency", "time_frequency"),
        ({"kind": "dft", "axis": "frequency"}, ["pair", "frequency"], "delay", "frequency_delay"),
    ],
)  # fmt: skip
def test_an_axis_that_comes_out_takes_no_name_that_stands_along_another(
    tmp_path: Path, case: dict[str, Any], axes: list[str], other: str, expected: str
) -> None:
    """The frequencies of coarse channels, and the delays of pairs, were lost from products."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = np.ones((2, 64), np.complex64)
    along = {"values": [5, 7], "units": "MHz" if other == "frequency" else "ns", "axis": axes[0]}
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v", "axes": axes,
        "coordinates": {other: along},
    }  # fmt: skip
    one = study_of({"w": {**case, "input": source}}).workload("w")
    found = one.product_outline(one.outline())
    assert found.coordinates[other].values.tolist() == [5, 7]
    assert found.axes[-1] == expected
