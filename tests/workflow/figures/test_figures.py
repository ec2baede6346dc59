"""Figures: what is drawn where, the same bytes twice, no results that did not verify."""

import itertools
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from argand import PRECISIONS
from matplotlib.colors import to_hex

from benchmarks.peers import study_names
from workflow.accuracy.grading import GrowthRow
from workflow.data import Product
from workflow.figures import pictures
from workflow.figures.answer import answer_figure
from workflow.figures.beam_pictures import draw_beams
from workflow.figures.marks import MARKERS
from workflow.figures.study import (
    COLOURS,
    draw_growth,
    draw_limits,
    draw_pareto,
    draw_product,
    growth_figure,
    limits_figure,
    pareto_figure,
    product_figure,
)
from workflow.figures.style import new_axes
from workflow.records import Record
from workflow.tables.answer import Answer


def record(workload, implementation, precision, time, error, **changes):
    return Record(
        workload=workload, kind="gemm", implementation=implementation, precision=precision,
        algorithm="cgemm", device="d",
        **{
            "time_us_p50": time, "tflops": 2.0 / time, "limit_fraction": 0.5,
            "rel_frobenius": error, "verified": True,
        } | changes,
    )  # fmt: skip


RECORDS = [
    record("w", "argand", "fp64", 40.0, 1e-16),
    record("w", "argand", "tf32", 10.0, 3e-4),
    record("w", "argand", "bf16", 20.0, 2e-3),
    record("w", "numpy", "fp32", 20.0, 1e-7),
    record("w", "argand", "fp16", 5.0, 1.0, verified=False, reason="wrong", time_us_p50=None),
    record("other", "torch", "fp32", 1.0, 1e-7),
]
GROWTH = [
    GrowthRow(precision, part, (16, 32, 64), (1e-7, 2e-7, 0.0), (1e-5,) * 3, 0.7, 0.5, "A")
    for precision in PRECISIONS
    for part in ("re", "im")
]


def squares(product, axes):
    axes.pcolormesh(np.abs(product.data))


PRODUCT = Product("c", np.arange(3000.0).reshape(50, 60), ("m", "n"), {}, "A product")
DRAWN = {
    "pareto": lambda path: draw_pareto(path, "w", RECORDS),
    "growth": lambda path: draw_growth(path, GROWTH),
    "limits": lambda path: draw_limits(path, RECORDS),
    "product": lambda path: draw_product(path, squares, PRODUCT),
}


@pytest.mark.parametrize("name", DRAWN)
def test_svg_is_well_formed_and_the_same_twice(tmp_path, name):
    first, second = tmp_path / "a" / "1.svg", tmp_path / "2.svg"
    DRAWN[name](first)
    with mpl.rc_context({"axes.facecolor": "red", "svg.hashsalt": "other"}):
        DRAWN[name](second)
    assert first.read_bytes() == second.read_bytes()
    root = ElementTree.parse(first).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert b"<dc:date>" not in first.read_bytes()


def test_the_users_settings_come_back(tmp_path):
    before = dict(mpl.rcParams)
    draw_pareto(tmp_path / "a.svg", "w", RECORDS)
    assert dict(mpl.rcParams) == before


def points(figure):
    """Marker, colour, x and y of every single point."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", "")]
    return {
        (line.get_marker(), to_hex(line.get_color()), x, y)
        for line in lines
        if line.get_markersize() < 10
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def test_pareto_draws_each_verified_result_in_its_colour():
    figure = pareto_figure("w", RECORDS)
    shown = [RECORDS[0], RECORDS[1], RECORDS[2]]
    expected = {
        ("o", COLOURS[r.precision].lower(), 1000 * r.tflops, r.rel_frobenius) for r in shown
    }
    (marker,) = {marker for marker, *_ in points(figure)} - {"o"}
    assert points(figure) == expected | {(marker, COLOURS["fp32"].lower(), 100.0, 1e-7)}
    assert "GFLOP/s" in figure.axes[0].get_xlabel()
    assert "1 not drawn" in figure.axes[0].get_xlabel()


def test_times_of_models_are_not_drawn():
    ours = record("w", "argand", "fp32", 10.0, 1e-7, backend="cpu")
    model = record("w", "argand", "bf16", 1.0, 2e-3, backend="cpu")
    for figure in (pareto_figure("w", [ours, model]), limits_figure([ours, model])):
        assert {colour for _, colour, *_ in points(figure)} == {COLOURS["fp32"].lower()}
        assert "1 not drawn: not verified, not timed, or a model" in figure.axes[0].get_xlabel()
    on_gpu = [replace(one, backend="cuda") for one in (ours, model)]
    assert len(points(pareto_figure("w", on_gpu))) == 2


@pytest.mark.parametrize("changes", [{"backend": "cpu"}, {"verified": False, "reason": "wide"}])
def test_without_a_result_to_draw_the_figures_are_empty(tmp_path, changes):
    only = [record("w", "argand", "bf16", 1.0, 2e-3, **changes)]
    draw_pareto(tmp_path / "pareto.svg", "w", only)
    draw_limits(tmp_path / "limits.svg", only)
    assert not points(pareto_figure("w", only))
    assert not points(limits_figure(only))


def test_pareto_rings_the_front():
    figure = pareto_figure("w", RECORDS)
    (ring,) = [line for line in figure.axes[0].lines if line.get_markersize() > 10]
    assert list(zip(*ring.get_data(), strict=True)) == [(200.0, 3e-4), (100.0, 1e-7), (50.0, 1e-16)]


def test_a_peer_has_one_marker_in_every_figure():
    own = [r for r in RECORDS if r.workload == "other"]
    (alone,) = {marker for marker, *_ in points(pareto_figure("other", own))}
    together = [*RECORDS, record("w", "torch", "fp32", 1.0, 1e-7)]
    assert alone in {marker for marker, *_ in points(pareto_figure("w", together))}
    assert alone not in {marker for marker, *_ in points(pareto_figure("w", RECORDS))}


def test_pareto_without_operations_counts_calls():
    figure = pareto_figure("w", [replace(r, tflops=None) for r in RECORDS])
    assert "calls/s" in figure.axes[0].get_xlabel()
    assert (COLOURS["fp32"].lower(), 5e4, 1e-7) in {point[1:] for point in points(figure)}


def test_an_exact_result_is_drawn():
    figure = pareto_figure("w", [*RECORDS, record("w", "scipy", "fp64", 80.0, 0.0)])
    assert (COLOURS["fp64"].lower(), 25.0, 1e-17) in {point[1:] for point in points(figure)}
    assert "exact" in [text.get_text() for text in figure.axes[0].texts]
    assert not pareto_figure("w", RECORDS).axes[0].texts


def test_growth_has_a_line_for_each_part_with_its_slope():
    figure = growth_figure(GROWTH)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [f"{p} {part}: +0.70, A" for p in PRECISIONS for part in ("re", "im")]
    assert [to_hex(line.get_color()) for line in figure.axes[0].lines[::2]] == [
        colour.lower() for colour in COLOURS.values()
    ]


def test_growth_lines_that_coincide_show_as_an_outline():
    """Errors of tf32 and fp16 are often the same: what is drawn later is thinner."""
    widths = [line.get_linewidth() for line in growth_figure(GROWTH).axes[0].lines[::2]]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == len(PRECISIONS)


def test_limits_has_a_dot_for_each_verified_result():
    figure = limits_figure(RECORDS)
    dots = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", "")]
    assert [dot.get_xdata()[0] for dot in dots] == [50.0] * 5
    filled = [dot.get_markerfacecolor() != "white" for dot in dots]
    assert filled == [True, True, True, False, False]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["w", "other"]


@pytest.mark.parametrize("draw", [lambda: limits_figure([]), lambda: growth_figure([])])
def test_nothing_to_draw_is_an_empty_figure(draw):
    figure = draw()
    figure.draw_without_rendering()
    assert not figure.legends or len(figure.axes[0].patches) == 0


@pytest.mark.parametrize("draw", ["pareto", "limits", "growth"])
def test_legends_do_not_cover_the_axes(draw):
    figure = {
        "pareto": lambda: pareto_figure("w", RECORDS),
        "limits": lambda: limits_figure(RECORDS),
        "growth": lambda: growth_figure(GROWTH),
    }[draw]()
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= figure.axes[0].get_window_extent().x1


def test_a_mesh_becomes_pixels_and_a_picture_has_a_title():
    figure = product_figure(squares, PRODUCT)
    assert figure.axes[0].collections[0].get_rasterized()
    assert figure.axes[0].get_title() == "A product"


def test_every_known_peer_has_a_marker_of_its_own():
    assert len(study_names()) <= len(MARKERS)


def test_every_precision_has_a_colour_of_its_own():
    assert list(COLOURS) == list(PRECISIONS)
    assert len(set(COLOURS.values())) == len(PRECISIONS)


DEFICIENCIES = {
    # Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB.
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def lab(rgb):
    """CIE L*a*b* (D65) of linear RGB."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    t = to_xyz @ rgb / np.array([0.9505, 1.0, 1.089])
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_stay_apart_with_colour_blindness(deficiency):
    """Ten times the just noticeable difference (about 1 in L*a*b*), side by side."""
    seen = {}
    for name, colour in COLOURS.items():
        srgb = np.array(mpl.colors.to_rgb(colour))
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        seen[name] = lab(np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1))
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


@pytest.mark.parametrize("equal", [0, 1, 40])
def test_the_likeliest_states_are_the_first_of_equal_ones(equal: int) -> None:
    values = np.random.default_rng(equal).integers(0, 6, 50).astype(np.float32)
    values[:equal] = np.nan if equal == 40 else 5
    expected = np.argsort(-values, kind="stable")
    for count in (1, 7, 16, 50):
        np.testing.assert_array_equal(pictures._largest(values, count), expected[:count])


@pytest.mark.parametrize(
    ("largest", "units", "shown", "label"),
    [
        (3.2e-7, "s", 320.0, "x (ns)"), (1.5e8, "Hz", 150.0, "x (MHz)"),
        (-999.0, "m", -999.0, "x (m)"), (2e4, "V", 2e4, "x (V)"), (1e-12, "s", 1e-3, "x (ns)"),
        (0.0, "Hz", 0.0, "x (Hz)"), (5.0, "", 5.0, "x"),
    ],
)  # fmt: skip
def test_axes_have_a_unit_that_people_read(largest, units, shown, label):
    values, found = pictures.labelled("x", np.array([0.0, largest, np.nan]), units)
    assert found == label
    np.testing.assert_allclose(values[:2], [0, shown])


@pytest.mark.parametrize("beams", [2, 5, 40])
def test_beams_are_counted_in_whole_numbers(beams):
    figure, axes = new_axes(7.6, 4)
    draw_beams(np.arange(1.0, beams + 1), {}, axes)
    figure.canvas.draw()
    assert all(tick == round(tick) for tick in axes.get_xticks())


@pytest.mark.parametrize("speedups", [(0.95,), (0.96, 1.04), (0.3, 2.0), (0.2, 60.0)])
def test_speedups_have_at_least_two_labels(speedups):
    figure = answer_figure([Answer(f"w{x}", "gemm", "fp32", 1.0, x, x, x) for x in speedups])
    figure.canvas.draw()
    (axes,) = figure.axes
    low, high = axes.get_xlim()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    shown = [text for at, text in zip(axes.get_xticks(), labels, strict=True) if low <= at <= high]
    assert len(shown) >= 2
    assert len(set(shown)) == len(shown)
    assert all(shown)
