"""Images as a workload: what is staged, computed, verified, delivered, drawn and refused."""

import re

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from matplotlib.figure import Figure
from test_shards import Pipeline

from tests.verdicts import COARSE
from tests.workflow.streamed_runs import Ran, workload_of
from tests.workflow.workloads.on_cpu import computed
from workflow.antennas import SPEED_OF_LIGHT, direction_cosines
from workflow.arrays.antenna_places import check_near
from workflow.data import Coordinate, blank
from workflow.files.input_error import InputError
from workflow.storage.products import check_product
from workflow.workloads.image import Image, ImageCase

GRID = {"n": 21, "field_of_view_deg": 40}
DRAWN = {"antennas": 30, "directions": GRID, "radius_m": 12.0, "channels": 2, "noise": 0.3}


def imaged(**parameters):
    return Image("i", ImageCase.model_validate({"kind": "image", **parameters}), 11)


def assessed(one, precision, change=lambda result: result):
    staged, result = computed(one, precision)
    return one.assess(staged, one.reference(staged), change(result), PRECISIONS[precision], "cpu")


@pytest.fixture
def own(tmp_path):
    """Covariances of two times in a file, with where the antennas stand."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal((2, 1, 3, 6, 8)) + 1j * rng.standard_normal((2, 1, 3, 6, 8))
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["r"] = v @ v.conj().swapaxes(-1, -2) / 8
        file["f"] = 1e8 + 1e6 * np.arange(3)
        for name in ("east", "north", "up"):
            file[name] = rng.uniform(-20, 20, 6)
    return tmp_path / "own.h5"


def source(path, **changes):
    places = {n: {"dataset": n, "units": "m", "axis": "antenna"} for n in ("east", "north", "up")}
    given = {
        "file": path, "covariances": "r",
        "axes": ["time", "polarization", "frequency", "antenna", "column"],
        "coordinates": {**places, "frequency": {"dataset": "f", "units": "Hz"}},
    }  # fmt: skip
    return given | changes


def test_a_grid_that_is_coarser_than_the_array_resolves_is_said():
    """A source halfway between its directions is missed, on the grid that is named it is not."""
    drawn = {**DRAWN, "channels": 1, "sources": [{"l": 0.0, "m": 0.0}], "noise": 0.0}

    def seen(cell_arcmin, n):
        one = imaged(**{**drawn, "directions": {"n": n, "cell_arcmin": cell_arcmin}})
        return one.remark(one.outline()), computed(one)[1].max() / 30**2  # of the power at l, m

    coarse, power = seen(60 * np.degrees(np.arcsin(0.4)), 2)
    assert power < 0.2
    assert "directions are 23.6 deg apart at the zenith and the array resolves 5.5" in coarse
    named = float(re.search("cell_arcmin of ([0-9]+) sees all", coarse)[1])
    fine, power = seen(named, 12)
    assert (fine, power > 0.6) == ("", True)
    one = imaged(**{**drawn, "radius_m": 1.0, "directions": {"n": 2, "field_of_view_deg": 40}})
    assert one.remark(one.outline()) == "", "all of it is one beam of the array"


def test_planted_sources_are_the_peaks():
    one = imaged(**DRAWN, sources=[{"l": 0.1, "m": -0.2}, {"l": -0.2, "m": 0.1, "power": 0.5}])
    l, m = one.case.directions.axes  # noqa: E741
    power = computed(one)[1][0, 0]
    row, column = np.unravel_index(power.argmax(), power.shape)
    cell = one.case.directions.cell
    assert abs(l[column] - 0.1) <= cell / 2
    assert abs(m[row] + 0.2) <= cell / 2
    # The wave of power 1, of that of half as much at its side lobes, and noise: within a quarter.
    assert power.max() == pytest.approx(2 * 30**2, rel=0.25)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_dynamic_range_and_peaks_are_measured(precision):
    accuracy = assessed(imaged(**DRAWN), precision)
    assert accuracy.verdict in ("verified", "unproven"), accuracy.reason
    least = {"fp64": 130, "bf16": 25}.get(precision, 65 if PRECISIONS[precision].u < 1e-6 else 40)
    least = 0 if precision in COARSE else least
    assert accuracy.measures["dynamic_range_db"] > least
    assert accuracy.measures["peak_shift"] == 0


def test_a_wrong_direction_is_wrong_and_a_moved_peak_is_reported():
    def spoilt(result):
        result[0, 0, 3, 4] *= 1.01
        return result

    assert assessed(imaged(**DRAWN), "fp32", spoilt).verdict == "wrong"
    moved = assessed(imaged(**DRAWN), "fp32", lambda result: np.roll(result, 1, axis=-1))
    assert (moved.verdict, moved.measures["peak_shift"] >= 1) == ("wrong", True)


def test_the_grid_has_its_centre_and_cells():
    grid = imaged(**DRAWN | {"directions": {
        "n": 4, "cell_arcmin": 60, "phase_centre": {"azimuth_deg": 90, "elevation_deg": 60},
    }}).case.directions  # fmt: skip
    l, m = grid.axes  # noqa: E741
    assert np.diff(l) == pytest.approx(np.sin(np.radians(1)))
    assert (l.mean(), m.mean()) == pytest.approx(direction_cosines(90, 60))
    np.testing.assert_allclose((grid.cosines**2).sum(axis=1), 1)
    wide = imaged(**DRAWN).case.directions
    assert wide.axes[0][[0, -1]] == pytest.approx([-np.sin(np.radians(20)), np.sin(np.radians(20))])


def test_what_was_added_up_stands_beside_the_image(own, tmp_path):
    """The frequencies and times of an image are of no axis that it has, and part of its meaning."""
    given = source(own)
    given["coordinates"]["time"] = {"start": 10.0, "step_s": 2.0}
    for summed, there in ([], False), (["time"], True):
        one = imaged(
            directions=GRID, sum=summed, input=given, precisions=["fp64"], baselines="none"
        )
        product = Pipeline(tmp_path / str(there), one).whole()
        found = product.coordinates
        np.testing.assert_array_equal(found["summed_frequency"].values, 1e8 + 1e6 * np.arange(3))
        assert found["summed_frequency"].units == "Hz"
        assert ("summed_time" in found, "time" in found) == (there, not there)
        time = found["summed_time" if there else "time"]
        np.testing.assert_array_equal(time.values, [10.0, 12.0])
        assert time.units == "s"


def test_the_product_has_directions_and_is_drawn():
    one = imaged(**DRAWN)
    product = one.product(*computed(one, "fp32"))
    check_product(product)
    assert product.axes == ("time", "polarization", "m", "l")
    azimuth, elevation = (product.coordinates[name] for name in ("azimuth", "elevation"))
    assert azimuth.of("azimuth") == ("m", "l")
    l, m = direction_cosines(azimuth.values[3, 5], elevation.values[3, 5])  # noqa: E741
    assert (l, m) == pytest.approx((product.coordinates["l"].values[5],
                                    product.coordinates["m"].values[3]))  # fmt: skip
    axes = Figure().subplots()
    one.picture(product, axes)
    assert len(axes.lines) == 2  # circles at the sources
    outline = one.product_outline(one.outline())
    assert (outline.data.shape, outline.data.dtype) == (product.data.shape, np.float64)


def test_a_file_of_ones_own_is_imaged_by_time_or_in_all(own):
    apart = imaged(directions=GRID, input=source(own))
    staged, each = computed(apart)
    assert each.shape == (2, 1, 21, 21)
    w = apart.case.directions.cosines[7] @ np.stack(
        [staged.coordinates[name].values for name in ("east", "north", "up")]
    )
    r, f = staged.operands["covariances"], staged.coordinates["frequency"].values
    v = np.exp(2j * np.pi / SPEED_OF_LIGHT * f[:, None] * w)
    direct = np.einsum("fa,tfab,fb->t", v.conj(), r[:, 0], v).real
    np.testing.assert_allclose(each.reshape(2, -1)[:, 7], direct, rtol=1e-10)
    together = imaged(directions=GRID, sum=["time"], input=source(own))
    np.testing.assert_allclose(computed(together)[1], each.sum(axis=0, keepdims=True), rtol=1e-10)
    assert together.split_axes({}) == ("polarization",)
    assert assessed(together, "fp32").verified
    without = imaged(directions=GRID, autocorrelations=False, input=source(own))
    trace = np.einsum("tpfaa->tp", r).real[..., None, None]
    np.testing.assert_allclose(computed(without)[1], each - trace, atol=1e-10)
    assert assessed(without, "fp32").verified


def test_shards_and_what_streams_are_the_whole(own, tmp_path):
    case = {"kind": "image", "directions": GRID, "input": source(str(own))}
    fp32 = {**case, "precision": "fp32", "precisions": ["fp32"]}
    whole = Pipeline(tmp_path / "whole", workload_of(fp32)).whole()
    split, records = Pipeline(tmp_path / "split", workload_of({**fp32, "shards": 2})).sharded(2)
    assert records[0].verified, records[0].reason
    np.testing.assert_array_equal(split.data, whole.data)
    for name, one in whole.coordinates.items():
        np.testing.assert_array_equal(split.coordinates[name].values, one.values)
    parts = Ran(tmp_path / "parts", workload_of({**fp32, "device_memory": "9 KiB"}), cpu())
    assert parts.records()[0].chunks == 2
    np.testing.assert_array_equal(parts.result().data, whole.data)


def test_covariances_that_are_none_are_refused(own):
    with h5py.File(own, "a") as file:
        file["upper"] = np.triu(file["r"][...])
    for changes, said in (
        ({"select": {"covariances": [":", ":", ":", [0, 2], [2, 0]]}},
         r"must be of the same antennas, got \[0, 2\] and \[2, 0\]"),
        ({"coordinates": {"frequency": {"dataset": "f", "units": "Hz"}}},
         "no east and no north.* to the workload that reads"),
        ({"select": {"covariances": [0, 0, ":", ":", "0:3"]}}, "must be square, got 6 antennas"),
        ({"coordinates": {**source(own)["coordinates"], "frequency": {"dataset": "f",
          "units": "m"}}}, "frequency must be in one of .'Hz', .*, got 'm'"),
        ({"coordinates": {**source(own)["coordinates"], "frequency": {"start": -1e6,
          "step_hz": 1e6}}}, "as they arrive, from 0 Hz on, got -1000000 to .* `centre_hz` of"),
        ({"coordinates": {**source(own)["coordinates"], "up": {"values": [0.0, 1.0], "units": "m",
          "axis": "time"}}}, "coordinates.up: must be of the axis antenna, .* got time; give it"),
        ({"coordinates": {**source(own)["coordinates"], "frequency": {"step_hz": 1e6}}},
         "input.covariances: frequencies must be finite and positive, .*; take others by input.se"),
        ({"coordinates": {**source(own)["coordinates"], "frequency": {"start": 900, "step": 1,
          "units": "THz"}}}, "input.covariances: positions must be within .* wavelengths"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            imaged(directions=GRID, input=source(own, **changes)).check()
    with pytest.raises(InputError, match=r"radius_m: positions must be within .*; make it"):
        imaged(**{**DRAWN, "radius_m": 1e6}, frequencies={"start_hz": 1e12}).check()
    with pytest.raises(InputError, match=r"^input\.covariances: covariances must be Hermitian"):
        imaged(directions=GRID, input=source(own, covariances="upper")).stage()


@pytest.mark.parametrize("unit", ["m", "km"])
def test_places_from_the_centre_of_the_earth(own, unit):
    """East, north and up of x, y and z would turn the sky by the place of the array."""
    longitude, latitude = np.deg2rad([21.4, -30.7])
    out = [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude)]
    with h5py.File(own, "a") as file:
        for name, cosine in zip(("east", "north", "up"), (*out, np.sin(latitude)), strict=True):
            file[name][...] = (6.372e6 * cosine + file[name][...]) / (1e3 if unit == "km" else 1)
    there = source(own)["coordinates"]
    for name in ("east", "north", "up"):
        there[name]["units"] = unit
    with pytest.raises(InputError, match="are 6372 km from the origin, so these are x, y and z"):
        imaged(directions=GRID, input=source(own, coordinates=there)).check()


def test_frequencies_in_mhz_make_the_same_image(own):
    with h5py.File(own, "a") as file:
        file["f_mhz"] = file["f"][...] / 1e6
    there = {**source(own)["coordinates"], "frequency": "f_mhz"}
    found = [
        computed(imaged(directions=GRID, input=source(own, **changes)))[1]
        for changes in ({}, {"coordinates": there})
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9 * abs(found[0]).max())


def test_nan_is_refused_or_let_through(own):
    with h5py.File(own, "a") as file:
        file["r"][1, 0, 2, 3, 3] = np.nan
    with pytest.raises(InputError, match="1 NaN"):
        imaged(directions=GRID, input=source(own)).stage()
    one = imaged(directions=GRID, input=source(own), allow_nonfinite=True)
    found = computed(one, "3xtf32")[1]
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    assert assessed(one, "3xtf32").verified


def test_the_mwa_is_imaged(real_data):
    path = real_data / "vis" / "mwa128_1061315448_mini.uvh5"
    given = {"file": path, "format": "uvh5", "covariances": "covariance"}
    said = (
        "polarization xy and yx are of two feeds and no power; take those of one feed each, which "
    )
    with pytest.raises(InputError, match=rf"{said}are numbers \[0, 1\] of xx, yy, xy, yx$"):
        imaged(directions=GRID, input=given).check()
    select = {"covariances": {"polarization": "0:2"}}
    one = imaged(
        directions=GRID, sum=["polarization"], autocorrelations=False,
        input={**given, "select": select},
    )  # fmt: skip
    one.check()
    accuracy = assessed(one, "3xtf32")
    assert accuracy.verified, accuracy.reason
    assert accuracy.measures["dynamic_range_db"] > 65
    assert accuracy.measures["peak_shift"] == 0


def test_places_that_are_not_read_yet_are_let_through():
    there = {name: Coordinate(np.arange(2.0), "m") for name in ("east", "north")}
    check_near(there | {"frequency": Coordinate(blank((3,), float), "Hz")}, "x", "y")
