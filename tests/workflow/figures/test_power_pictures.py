"""Pictures of power over time and frequency."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from workflow.data import Coordinate
from workflow.figures.power_pictures import draw_powers

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
