"""Beams that are steered by the antennas, frequencies and places of a file."""

import h5py
import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.workflow import one_case
from tests.workflow.workloads.on_cpu import computed
from workflow import antennas
from workflow.arrays.antenna_places import unresolved
from workflow.config.beamforming_case import BeamformingCase
from workflow.files.input_error import InputError
from workflow.storage.products import check_product
from workflow.workloads.adaptive import Adaptive, AdaptiveCase
from workflow.workloads.beamforming import Beamforming
from workflow.workloads.correlate import Correlate, CorrelateCase
from workflow.workloads.image import Image, ImageCase


def beamforming(**parameters):
    case = BeamformingCase.model_validate({"kind": "beamforming", **parameters})
    return Beamforming.for_case(case)("b", case, 11)


def array_file(path, *, positions=True):
    """A UVH5 file of five antennas at two times and three frequencies; its covariance."""
    rng = np.random.default_rng(8)
    numbers = np.array([3, 7, 8, 20, 41])
    pairs = [(i, j) for i in range(5) for j in range(i, 5)]
    data = rng.integers(-99, 99, (2, len(pairs), 3, 1, 2)).astype("f4").view("c8")[..., 0]
    exact = np.zeros((2, 3, 1, 5, 5), "c8")
    for place, (i, j) in enumerate(pairs):
        if i == j:
            data[:, place] = data[:, place].real
        exact[..., i, j], exact[..., j, i] = data[:, place].conj(), data[:, place]
    # Some pairs are in the file from the later antenna to the earlier one.
    for place in range(0, len(pairs), 3):
        i, j = pairs[place]
        pairs[place], data[:, place] = (j, i), data[:, place].conj()
    with h5py.File(path, "w") as file:
        file["Data/visdata"] = data.reshape(-1, 3, 1)
        ends = numbers[np.array(pairs * 2)]
        header = {
            "ant_1_array": ends[:, 0], "ant_2_array": ends[:, 1],
            "time_array": 2458000.5 + np.repeat([0.0, 10.0], len(pairs)) / 86400,
            "freq_array": np.array([1.5e8, 1.6e8, 1.7e8]), "polarization_array": [-5],
        }  # fmt: skip
        if positions:
            header |= {
                "antenna_numbers": [99, *numbers], "latitude": 0.0, "longitude": 0.0,
                "antenna_positions": rng.normal(size=(6, 3)) * 20,
            }  # fmt: skip
        for name, values in header.items():
            file[f"Header/{name}"] = np.asarray(values)
    return exact


STEERED = {
    "format": "uvh5", "samples": "covariance",
    "axes": {"samples": ["snapshot", "frequency", "polarization", "antenna", "time"]},
    "select": {"samples": {"snapshot": 1}},
}  # fmt: skip


def test_beams_are_steered_by_the_antennas_of_the_file(tmp_path):
    """At latitude and longitude 0 east is y, north z and up x; antenna 99 has no data."""
    exact = array_file(tmp_path / "a.uvh5")
    one = beamforming(input={"file": tmp_path / "a.uvh5", **STEERED}, beams=4, extent=0.3)
    one.check()
    staged, beams = computed(one, "fp64")
    with h5py.File(tmp_path / "a.uvh5") as file:
        where = file["Header/antenna_positions"][...][1:, [1, 2, 0]]
    assert np.ptp(where[:, 2]) > 1
    grid = np.array([[-0.3, -0.3], [0.3, -0.3], [-0.3, 0.3], [0.3, 0.3]])
    toward = np.column_stack([grid, np.full(4, 0.82**0.5)])
    waves = np.array([1.5e8, 1.6e8, 1.7e8])[:, None, None] / antennas.SPEED_OF_LIGHT
    weights = np.exp(-2j * np.pi * waves * (toward @ where.T))
    expected = np.einsum("fba,fac->fbc", weights, exact[1, :, 0])
    assert np.abs(beams[:, 0] - expected).max() <= 1e-5 * np.abs(expected).max()  # weights in fp32
    product = one.product(staged, beams)
    check_product(product)
    np.testing.assert_allclose(product.coordinates["antenna_position"].values, where)
    assert product.coordinates["antenna_position"].axes == ("antenna", "east_north_up")
    np.testing.assert_array_equal(product.coordinates["l"].values, grid[:, 0])
    figure = Figure()
    one.picture(product, figure.subplots())
    assert figure.axes[0].get_xlabel() == "l (east)"
    outlined = one.outline()
    assert outlined.operands["weights"].shape == (3, 1, 4, 5)


@pytest.mark.parametrize("kind", ["beamforming", "adaptive"])
@pytest.mark.parametrize("beams", [1, 6])
def test_beams_about_a_direction(tmp_path, kind, beams):
    """A beam by itself looked at the zenith, and a grid lay about it, whatever was observed."""
    rng = np.random.default_rng(4)
    where, wave = rng.uniform(-5, 5, (6, 3)), np.array([0.25, -0.4330127018922193])
    path = tmp_path / "narrow.h5"
    with h5py.File(path, "w") as file:
        file["v"], file["enu"] = rng.normal(size=(6, 40)).astype(complex), where
        file["r"] = np.eye(6, dtype=complex)
    places = {
        name: {"dataset": "enu", "axis": "antenna", "column": column, "units": "m"}
        for column, name in enumerate(("east", "north", "up"))
    }
    operand = {"beamforming": {"samples": "v"}, "adaptive": {"covariances": "r"}}[kind]
    case = {
        "kind": kind, "beams": beams, "extent": 0.1,
        "phase_centre": {"azimuth_deg": 150, "elevation_deg": 60},
        "input": {
            "file": str(path), **operand,
            "coordinates": {"frequency": {"values": [150], "units": "MHz"}, **places},
        },
    }  # fmt: skip
    staged = one_case.staged(case)
    toward = np.stack([staged.coordinates[name].values for name in "lm"], axis=-1)
    np.testing.assert_allclose(toward.mean(axis=0), wave, atol=1e-12)
    np.testing.assert_allclose(np.ptp(toward, axis=0), 0 if beams == 1 else 0.2, atol=1e-12)
    up = np.sqrt(1 - np.square(toward).sum(axis=1, keepdims=True))
    delays = np.hstack([toward, up]) @ where.T / antennas.SPEED_OF_LIGHT
    weights = np.exp(-2j * np.pi * 150e6 * delays)
    np.testing.assert_allclose(staged.operands["weights"][0, 0], weights, atol=1e-14)  # not fp32
    assert one_case.study_of(case).workload("w").outline().operands["weights"].dtype == complex
    if kind == "beamforming":
        one, axes = one_case.study_of(case).workload("w"), Figure().subplots()
        power = np.square(np.abs(weights @ np.ones((6, 40)))).reshape(1, 1, beams, 40)
        one.picture(one.product(staged, np.sqrt(power).astype(complex)), axes)
        if beams > 1:
            assert np.mean(axes.get_xlim()) == pytest.approx(wave[0])
            assert np.mean(axes.get_ylim()) == pytest.approx(wave[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": None}, "beams must be given where the input has no weights"),
        ({"antennas": 5}, "antennas must not be given beside input"),
        ({"array": {"spacing_m": 2.0}}, "array.spacing_m must not be given beside input"),
    ],
)
def test_a_grid_needs_what_the_file_has_not(tmp_path, change, message):
    array_file(tmp_path / "a.uvh5")
    given = {"input": {"file": tmp_path / "a.uvh5", **STEERED}, "beams": 4, **change}
    with pytest.raises(ValueError, match=message):
        beamforming(**{key: value for key, value in given.items() if value is not None})


def test_antennas_without_a_place_cannot_be_steered(tmp_path):
    array_file(tmp_path / "a.uvh5", positions=False)
    one = beamforming(input={"file": tmp_path / "a.uvh5", **STEERED}, beams=4)
    with pytest.raises(InputError, match=r"input\.weights: missing; .* no east and no north"):
        one.check()


@pytest.mark.parametrize("detect", [None, "stokes"])
def test_one_antenna_without_a_place_is_its_own_beam(tmp_path, detect, rng):
    """A recording of a telescope with one dish has no axis of antennas."""
    path = tmp_path / "dish.h5"
    voltages = (rng.standard_normal((2, 3, 40, 2)) @ [1, 1j]).astype(np.complex64)
    with h5py.File(path, "w") as file:
        file["v"] = voltages
    axes = {"samples": ["polarization", "frequency", "time"]}
    given = {"input": {"file": path, "samples": "v", "axes": axes}, "beams": 1}
    one = beamforming(**given, **({"detect": detect, "integrate": 8} if detect else {}))
    one.check()
    assert one.outline().operands["weights"].shape == (1, 1, 1, 1)
    staged, found = computed(one, "fp64")
    assert one.remark(staged) == ""
    product = one.product(staged, found)
    check_product(product)
    assert not product.coordinates.keys() & {"l", "m", "antenna_position"}
    expected = voltages.swapaxes(0, 1)
    if detect:
        x, y = expected[:, 0], expected[:, 1]
        expected = np.stack([abs(x) ** 2 + abs(y) ** 2, abs(x) ** 2 - abs(y) ** 2,
                             2 * (x.conj() * y).real, 2 * (x.conj() * y).imag], axis=1)  # fmt: skip
        expected = expected.reshape(3, 4, 5, 8).sum(axis=-1)
    np.testing.assert_allclose(product.data[:, :, 0], expected, rtol=1e-5, atol=1e-5)
    axes = Figure().subplots()
    one.picture(product, axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("frequency", "time")
    several = beamforming(**(given | {"beams": 4}))
    with pytest.raises(InputError, match=r"input\.weights: missing; .* no east and no north"):
        several.check()


def units_file(path, **units):
    """A case of samples whose frequencies and places are numbers in these units."""
    scale = {"GHz": 1e9, "MHz": 1e6, "km": 1e3, "cm": 1e-2}
    si = {"frequency": np.arange(3.0) * 1e6 + 150e6, "east": np.arange(5.0) * 3}
    si["north"] = si["up"] = si["east"] ** 1.5
    coordinates = {}
    with h5py.File(path, "w") as file:
        file["samples"] = np.ones((3, 5, 8), np.complex64)
        for name, values in si.items():
            file[name] = values / scale.get(units[name], 1)
            coordinates[name] = {"dataset": name, "units": units[name] or None}
            if name != "frequency":
                coordinates[name]["axis"] = "antenna"
    axes = {"samples": ["frequency", "antenna", "time"]}
    return {"file": path, "samples": "samples", "coordinates": coordinates, "axes": axes}


UNITS = {"frequency": "Hz", "east": "m", "north": "m", "up": "m"}


@pytest.mark.parametrize(
    ("name", "unit"), [("frequency", "MHz"), ("frequency", "GHz"), ("east", "km"), ("up", "cm")]
)
def test_beams_are_steered_by_frequencies_and_places_of_any_unit(tmp_path, name, unit):
    """150 in MHz is not 150 Hz, at which all antennas would be in phase."""
    found = [
        beamforming(input=units_file(tmp_path / "v.h5", **units), beams=4).stage()
        for units in (UNITS, {**UNITS, name: unit})
    ]
    first, second = (one.operands["weights"] for one in found)
    np.testing.assert_allclose(second, first, atol=1e-5)
    assert abs(first - 1).max() > 1
    one = beamforming(input=units_file(tmp_path / "v.h5", **{**UNITS, name: "s"}), beams=4)
    with pytest.raises(InputError, match=rf"coordinates\.{name} must be in one of .*, got 's'"):
        one.check()


def test_places_without_a_unit_steer_no_beams(tmp_path):
    one = beamforming(input=units_file(tmp_path / "v.h5", **{**UNITS, "up": ""}), beams=4)
    with pytest.raises(InputError, match=r"up must be in one of \['m', 'km', .*, got ''"):
        one.check()


def test_places_from_the_centre_of_the_earth(tmp_path):
    """They steer no beams and stand in no UVH5 file."""
    given = units_file(tmp_path / "v.h5", **UNITS)
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        file["up"][...] = 6.371e6
    places = given["coordinates"]
    there = {**places, "time": {"step_s": 1.0}}
    vis = {key: one for key, one in given.items() if key != "samples"}
    vis |= {"voltages": "samples", "axes": [*given["axes"]["samples"]], "coordinates": there}
    site = {"latitude_deg": 0.0, "longitude_deg": 0.0, "julian_date": 2461372.75}
    written = CorrelateCase.model_validate({"kind": "correlate", "input": vis, "uvh5": site})
    for one in (beamforming(input=given, beams=4), Correlate("c", written, 11)):
        with pytest.raises(InputError, match="antennas are 6371 km from the origin, so these are"):
            one.check()
    places["up"] = {"values": [6.371e6] * 3, "units": "m", "axis": "frequency"}
    with pytest.raises(
        InputError, match=r"up: must be of the axis antenna, .* got frequency; give"
    ):
        beamforming(input=given, beams=4).check()


def test_places_farther_than_any_number_are_checked_without_a_warning(tmp_path):
    given = units_file(tmp_path / "v.h5", **UNITS)
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        file["up"][...] = 1e300
    beamforming(input=given, beams=4).check()


@pytest.mark.parametrize(
    ("hertz", "said"), [(1.5e8, ""), (150.0, "the antennas are 1e-05 waveleng")]
)
def test_an_array_far_smaller_than_a_wavelength_is_said(tmp_path, hertz, said):
    """Of frequencies in MHz that a study calls Hz, or of sound, all directions look alike."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"], file["r"] = np.ones((1, 3, 8), "c8"), np.eye(3)[None].astype("c8")
    place = {"values": [0.0, 10.0, 20.0], "units": "m", "axis": "antenna"}
    there = {"frequency": {"start": hertz, "step_hz": 1.0}, "east": place,
             "north": {**place, "values": [0.0] * 3}}  # fmt: skip
    source = {"file": tmp_path / "v.h5", "coordinates": there}
    samples = {**source, "samples": "v", "axes": ["frequency", "antenna", "time"]}
    given = {**source, "covariances": "r", "axes": ["frequency", "antenna", "column"]}
    adaptive = AdaptiveCase.model_validate({"kind": "adaptive", "beams": 3, "input": given})
    grid = {"n": 3, "field_of_view_deg": 40}
    image = ImageCase.model_validate({"kind": "image", "directions": grid, "input": given})
    for one in (
        beamforming(beams=3, input=samples), beamforming(beams=3, detect="power", input=samples),
        Adaptive("a", adaptive, 11), Image("i", image, 11),
    ):  # fmt: skip
        remark = one.remark(one.stage())
        assert said in remark
        assert ("wavelengths of light apart" in remark) == bool(said)
    assert unresolved(np.zeros((1, 2)), np.array([hertz])) == ""  # of one antenna
