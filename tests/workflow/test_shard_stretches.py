"""The stretches of an axis that shards are, and their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workflow.data import Coordinate, Staged
from workflow.shards import Shard, choose_axis, shards, split_part
from workflow.storage.staged import open_staged, write_staged


@pytest.mark.parametrize("count", [1, 2, 3, 16, 100])
def test_stretches_cover_an_axis_in_order_and_differ_by_one(count: int) -> None:
    parts = [range(100)[shard.within(100)] for shard in shards(count)]
    assert [index for part in parts for index in part] == list(range(100))
    assert {len(part) for part in parts} <= {100 // count, 100 // count + 1}


def test_an_operand_that_is_broadcast_along_the_split_axis_is_in_every_shard(
    tmp_path: Path,
) -> None:
    path, axes = tmp_path / "w.h5", ("batch", "m")
    each, once = np.arange(12.0).reshape(4, 3), np.arange(3.0).reshape(1, 3)
    one = Coordinate(np.array([3.0]), "s", "time", step=0.5)  # whose step is not known otherwise
    staged = Staged({"each": each, "once": once}, {"each": axes, "once": axes}, {"time": one})
    write_staged(path, staged, workload="w", kind="gemm")
    with open_staged(path, lambda axes: ["batch"], shards(2)[1]) as file:
        found = file.read()
    np.testing.assert_array_equal(found.operands["each"], each[2:])
    np.testing.assert_array_equal(found.operands["once"], once)
    assert found.coordinates["time"].step == one.step


def test_names_sort_and_are_read_back() -> None:
    names = [str(shard) for shard in shards(12)]
    assert names == sorted(names)
    assert [Shard.parse(name) for name in names] == list(shards(12))
    assert split_part("beams/03-of-12") == ("beams", Shard(2, 12))
    assert split_part("beams") == ("beams", None)


@pytest.mark.parametrize("name", ["", "3", "0-of-3", "4-of-3", "1-of-12", "01-of-3", "1-of-3x"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="named like 02-of-16"):
        Shard.parse(name)


def test_the_first_axis_that_is_long_enough() -> None:
    lengths = {"frequency": 4, "time": 100, "beam": 1000}
    assert choose_axis(("frequency", "time"), lengths, 4) == "frequency"
    assert choose_axis(("frequency", "time"), lengths, 5) == "time"
    assert choose_axis(("time", "frequency"), lengths, 4) == "time"
    with pytest.raises(ValueError, match=r"at most 100, .*frequency has 4, time has 100.* got 101"):
        choose_axis(("frequency", "time"), lengths, 101)
