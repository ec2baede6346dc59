"""Selections: what is none, and their pieces, together the selection, each within its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from pydantic import ValidationError

from workflow.config.file_input import DatasetRef, FileInput
from workflow.storage.selections import pick

SHAPE = (6, 5, 40)
SELECTIONS: list[Any] = [
    None,
    [":", ":", "::3"],
    ["1:5", 2, "7:40:2"],
    [[5, 0, 3], ":", [39, 1, 2, 20, 7]],
    [3, 4, 39],
    [[1], "0:1", ":"],
]


class TwoOperands(FileInput):
    x: DatasetRef
    y: DatasetRef | None = None


@pytest.mark.parametrize("entry", ["a:b", "::-1", "1", "", True, 1.5, "1:2:3:4"])
def test_malformed_entries_are_refused_by_the_model(entry: Any) -> None:
    with pytest.raises(ValidationError):
        TwoOperands(file=Path("x.h5"), x="/x", select={"x": [entry]})


def test_select_names_an_operand() -> None:
    with pytest.raises(ValidationError, match=r"select\.z must be one of \['x', 'y'\], got 'z'"):
        TwoOperands(file=Path("x.h5"), x="/x", select={"z": [":"]})
    with pytest.raises(ValidationError, match=r"select\.y: there is no y"):
        TwoOperands(file=Path("x.h5"), x="/x", select={"y": [":"]})


@pytest.mark.parametrize("entries", SELECTIONS)
@pytest.mark.parametrize("chunks", [None, (1, 5, 40), (6, 1, 8)])
@pytest.mark.parametrize("most", [1, 7, 64, 10_000])
def test_pieces_make_the_selection(
    entries: Any, chunks: tuple[int, ...] | None, most: int, tmp_path: Path
) -> None:
    data = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    picked = pick(entries, SHAPE)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", data=data, chunks=chunks)
        found = np.full(picked.shape, -1)
        for place, piece in picked.pieces(most, dataset.chunks):
            values = piece.read(dataset)
            assert piece.elements <= max(most, 1)
            assert np.all(found[place] == -1), "no value twice"
            found[place] = values
        np.testing.assert_array_equal(found, picked.read(dataset))


def test_the_axis_of_most_chunks_is_cut() -> None:
    pieces = list(pick(None, (8, 1000)).pieces(4000, (8, 10)))
    assert [place for place, _ in pieces] == [
        (slice(0, 8), slice(0, 500)),
        (slice(0, 8), slice(500, 1000)),
    ]
