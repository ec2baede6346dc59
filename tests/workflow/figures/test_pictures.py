"""Titles of products' pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from workflow.data import Coordinate, Product
from workflow.figures import pictures
from workflow.figures.study import product_figure
from workflow.preflight.loading import load_study


def test_a_title_fits_and_says_which_entry_is_drawn() -> None:
    coordinates = {
        "frequency": Coordinate(np.array([1.420405751e9, 1.420406751e9]), "Hz"),
        "polarization": Coordinate(np.array(["xx", "yy"])),
        "integration": Coordinate(np.array([0.25]), "s"),
    }
    axes = ("beam", "frequency", "polarization", "integration", "l")
    long = "counts, " + "each on a trajectory of its own, " * 4
    product = Product("x", np.zeros((2, 2, 2, 1, 3)), axes, coordinates, long)
    *lines, last = pictures.title_of(product, 4).split("\n")
    assert last == "beam 0, frequency 1.42040575 GHz, polarization xx"
    assert " ".join(lines) == long.strip()
    assert max(map(len, lines)) <= pictures.MOST_TITLE
    assert pictures.title_of(replace(product, title="short")) == "short"


def test_the_legend_of_a_system_stands_below_the_title(tmp_path: Path) -> None:
    case = {"kind": "solve", "n": 4, "rhs": 3}
    workload = load_study({"device": "cpu", "workloads": {"w": case}}).workload("w")
    found = Product("x", np.ones((1, 4, 3), complex), ("batch", "unknown", "rhs"), {}, "A product")
    figure = product_figure(workload.picture, found)
    figure.savefig(tmp_path / "drawn.svg")
    (axes,) = figure.axes
    assert not axes.get_legend().get_window_extent().overlaps(axes.title.get_window_extent())
