"""Products and datasets as operands: the coordinates of axes that a number drops."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from one_input import AXES, OneInput

from workflow.data import Coordinate, Product
from workflow.inputs.axes import Operand
from workflow.inputs.hdf5_operands import describe_coordinates
from workflow.inputs.product_operand import ProductOperand

OPERAND = Operand("x", AXES)
DATA = np.zeros((2, 3, 4), np.complex64)
FEEDS = np.array(["xx", "yy"])


def test_a_product_says_which_entry_a_number_took() -> None:
    product = Product("p", DATA, AXES, {"a": Coordinate(FEEDS, "", "feed")}, "p")
    source = OneInput(file=Path("p.h5"), x="/x", select={"x": {"a": 1}})
    operand = ProductOperand(OPERAND, product, source)
    assert operand.header.shape == (1, 3, 4)
    found = operand.coordinates()["a"]
    assert (found.values.tolist(), found.long_name) == (["yy"], "feed")


def test_an_axis_that_the_operand_lacks_leaves_what_was_taken() -> None:
    product = Product("p", DATA, ("feed", "b", "c"), {"feed": Coordinate(FEEDS)}, "p")
    source = OneInput(file=Path("p.h5"), x="/x", select={"x": {"feed": 1}})
    found = ProductOperand(OPERAND, product, source).coordinates()
    assert list(found) == ["selected_feed"]
    assert found["selected_feed"].values.tolist() == [FEEDS[1]]


def test_a_file_says_which_entry_a_number_took(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = DATA
    source = OneInput(
        file=path, x="/x", axes={"x": [*AXES]}, select={"x": {"a": 1}}, coordinates={"a": [5, 7]}
    )
    assert describe_coordinates(source, [OPERAND])[0]["a"].values.tolist() == [7]
