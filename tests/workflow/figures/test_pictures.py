"""Pictures of power over time and frequency, titles of products' pictures, and legends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from workflow.data import Array, Coordinate, Product
from workflow.figures import pictures
from workflow.figures.power_pictures import draw_powers
from workflow.figures.study import product_figure
from workflow.preflight.loading import load_study

NAMES = ("time", "frequency")
THERE = {
    "time": Coordinate(np.array([0.5, 1.5, 2.5]), "s"),
    "frequency": Coordinate(np.array([3e6, 2e6, 1e6, 0.0]), "Hz"),
}
LABEL = "power (dB relative to the largest)"


def test_frequencies_that_fall_are_drawn_from_left_to_right() -> None:
    axes, powers = Figure().subplots(), np.arange(1.0, 13.0).reshape(3, 4)
    draw_powers(powers, NAMES, THERE, axes)
    (image,) = axes.images
    assert image.get_extent() == [-0.5, 3.5, 0, 3]
    np.testing.assert_allclose(image.get_array(), 10 * np.log10(powers[:, ::-1] / 12))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("frequency (MHz)", "time (s)")


@pytest.mark.parametrize(
    ("shape", "label", "where"), [((1, 4), "frequency (MHz)", [0, 1, 2, 3]),
                                  ((3, 1), "time (s)", [0.5, 1.5, 2.5])],
)  # fmt: skip
def test_one_row_or_column_is_a_curve(
    shape: tuple[int, int], label: str, where: list[float]
) -> None:
    axes = Figure().subplots()
    there = {name: one for name, one in THERE.items() if len(one.values) in shape}
    draw_powers(np.ones(shape), NAMES, there, axes)
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_xdata(), where)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (label, LABEL)


def test_entries_without_coordinates_are_counted() -> None:
    axes = Figure().subplots()
    names = {"frequency": Coordinate(np.array(["a", "b", "c", "d"]))}
    draw_powers(np.ones((3, 4)), NAMES, names, axes)
    assert axes.images[0].get_extent() == [-0.5, 3.5, -0.5, 2.5]
    assert (axes.get_xlabel(), axes.get_ylabel()) == NAMES[::-1]


def test_uneven_entries_are_counted_in_an_image() -> None:
    """Channels that a list selects: cells of one width, from the first to the last, are others."""
    axes, hertz = Figure().subplots(), np.array([1e6, 2e6, 3e6, 9e6])
    there = {**THERE, "frequency": Coordinate(hertz, "Hz")}
    draw_powers(np.ones((3, 4)), NAMES, there, axes)
    assert axes.images[0].get_extent() == [-0.5, 3.5, 0, 3]
    assert axes.get_xlabel() == "entry along frequency, whose steps are not equal"
    axes, there = Figure().subplots(), {**THERE, "time": Coordinate(np.array([0.5, 1.5, 9.5]), "s")}
    draw_powers(np.ones((3, 4)), NAMES, there, axes)
    assert axes.images[0].get_extent() == [-0.5, 3.5, -0.5, 2.5]
    assert axes.get_ylabel() == "entry along time, whose steps are not equal"
    curve, there = Figure().subplots(), {"frequency": Coordinate(hertz, "Hz")}
    draw_powers(np.ones((1, 4)), NAMES, there, curve)
    np.testing.assert_allclose(curve.lines[0].get_xdata(), hertz / 1e6)


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
    assert max(map(len, lines)) <= pictures.MAX_TITLE
    assert pictures.title_of(replace(product, title="short")) == "short"


def test_the_legend_of_a_system_stands_below_the_title(tmp_path: Path) -> None:
    case = {"kind": "solve", "n": 4, "rhs": 3}
    workload = load_study({"device": "cpu", "workloads": {"w": case}}).workload("w")
    found = Product("x", np.ones((1, 4, 3), complex), ("batch", "unknown", "rhs"), {}, "A product")
    figure = product_figure(workload.picture, found)
    figure.savefig(tmp_path / "drawn.svg")
    (axes,) = figure.axes
    assert not axes.get_legend().get_window_extent().overlaps(axes.title.get_window_extent())


@pytest.mark.parametrize(
    ("values", "shown", "label"),
    [
        (356_687_375 + np.array([-125.0, 0.0, 125.0]), [-125, 0, 125], "x less 356.687375 MHz"),
        # What is shown is less the nine digits of the label.
        (1_420_405_751.77 + np.arange(3), [1.77, 2.77, 3.77], "x less 1.42040575 GHz"),
    ],
)
def test_values_of_a_narrow_band_are_less_its_middle(
    values: Array, shown: list[float], label: str
) -> None:
    found, said = pictures.labelled("x", values, "Hz")
    assert said == f"{label} (Hz)"
    np.testing.assert_allclose(found, shown, atol=1e-6)
