"""Selections are NumPy's; pieces of one are together the selection, each within its size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import OneInput, compound, parts, put, read, refused
from pydantic import ValidationError

from workflow.inputs.selections import pick

SHAPE = (6, 5, 40)
SELECTIONS: list[Any] = [
    None, [":", ":", "::3"], ["1:5", 2, "7:40:2"], [[5, 0, 3], ":", [39, 1, 2, 20, 7]], [3, 4, 39],
    [[1], "0:1", ":"],
]  # fmt: skip


@pytest.mark.pairwise
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


@pytest.mark.parametrize(
    ("select", "index"),
    [
        ([":", ":", ":"], np.s_[:, :, :]),
        (["1:3", "::2", "-3:-1"], np.s_[1:3, ::2, -3:-1]),
        ([0, ":", -1], np.s_[0, :, -1]),
        ([":", [4, 0, 0], "2:"], np.s_[:, [4, 0, 0], 2:]),
        ([[3, 1], [0, 2], 1], (*np.ix_([3, 1], [0, 2]), 1)),
        ([" 0 : 4 : 3 ", "1:", ":1"], np.s_[0:4:3, 1:, :1]),
    ],
)
def test_selections_are_numpys(tmp_path: Path, select: Any, index: Any) -> None:
    path = tmp_path / "run.h5"
    re, im = parts((4, 5, 6), "int16")
    x = re + 1j * im.astype(np.float32)
    put(path, x=compound(re, im, "int16"), re=re, im=im)
    expected = x[index]
    for ref in ("/x", {"real": "/re", "imag": "/im"}):
        data = read(path, ref, select)
        np.testing.assert_array_equal(data.reshape(expected.shape), expected)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ([":", ":"], "/x has 3 axes of shape (4, 5, 6), so 3 entries are needed, got 2"),
        ([4, 0, ":"], "axis 0 has length 4: an index must be within -4 to 3, got 4"),
        ([[0, -5], ":", ":"], "axis 0 has length 4: an index must be within -4 to 3, got -5"),
        ([":", "0:9", ":"], "axis 1 has length 5: a bound must be within -5 to 5, got 9"),
        ([":", "3:2", ":"], "axis 1 has length 5: '3:2' takes nothing of it"),
        ([":", "::0", ":"], "axis 1: the step must be at least 1, got '::0'"),
        ([":", [], ":"], "axis 1: the list of indices is empty"),
    ],
)
def test_selections_that_do_not_fit(tmp_path: Path, select: Any, message: str) -> None:
    path = put(tmp_path / "run.h5", x=np.zeros((4, 5, 6), np.complex64))
    refusal = refused(path, select=select)
    assert refusal.startswith("input.select.x: ")
    assert message in refusal


@pytest.mark.parametrize("entry", ["a:b", "::-1", "", True, 1.5, "1:2:3:4"])
def test_malformed_selections_are_refused_by_the_model(entry: Any) -> None:
    with pytest.raises(ValidationError):
        OneInput(file=Path("x.h5"), x="/x", select={"x": [entry]})


def test_select_names_an_operand() -> None:
    with pytest.raises(ValidationError, match=r"select\.z must be one of \['x', 'y'\], got 'z'"):
        OneInput(file=Path("x.h5"), x="/x", select={"z": [":"]})
    with pytest.raises(ValidationError, match=r"select\.y: there is no y"):
        OneInput(file=Path("x.h5"), x="/x", select={"y": [":"]})
