import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from matplotlib.figure import Figure
from pydantic import ValidationError

from tests.workflow.workloads.on_cpu import computed
from workflow.arrays import antennas
from workflow.data import power
from workflow.storage.inputs import InputError
from workflow.storage.products import check_product
from workflow.workloads.beamforming import Beamforming, BeamformingCase

SIZES = {"beams": 25, "antennas": 16, "samples": 400, "channels": 2, "polarizations": 2}


def beamforming(**parameters):
    case = BeamformingCase.model_validate({"kind": "beamforming", **parameters})
    return Beamforming("b", case, 11)


@pytest.mark.pairwise
@pytest.mark.parametrize("geometry", ["linear", "planar"])
@pytest.mark.parametrize("beam", [0, 7, 12, 24])
@pytest.mark.parametrize("precision", ["fp64", "tf32", "bf16"])
def test_strongest_beam_is_the_one_pointed_at_the_source(geometry, beam, precision):
    array = {"geometry": geometry}
    l, m = beamforming(**SIZES, array=array).directions()[beam]  # noqa: E741
    one = beamforming(**SIZES, array=array, sources=[{"l": l, "m": m, "power": 2.0}], noise=0.5)
    _, beams = computed(one, precision)
    for powers in power(beams).mean(axis=-1).reshape(-1, 25):
        assert powers.argmax() == beam


def test_waves_add_coherently_and_noise_does_not():
    one = beamforming(
        **(SIZES | {"samples": 4096}), sources=[{"l": 0, "m": 0, "power": 3}], noise=2
    )
    centre = int(np.argmin(np.hypot(*one.directions().T)))
    assert np.array_equal(one.directions()[centre], [0, 0])
    mean = power(computed(one)[1])[:, :, centre].mean()
    # Power antennas^2 P + antennas N; of |Gaussian|^2 the deviation is the mean: 5 standard errors.
    expected = 16**2 * 3 + 16 * 2
    assert abs(mean / expected - 1) < 5 / (4 * 4096) ** 0.5


def test_a_wave_from_the_east_reaches_an_eastern_antenna_first():
    where = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    found = antennas.phases(np.array([30e6]), where, np.array([[0.6, 0.0], [0.0, 0.8]]))
    earlier = 2 * np.pi * 30e6 * 10 / antennas.SPEED_OF_LIGHT
    assert found.shape == (1, 2, 3)
    assert np.allclose(np.angle(found[0, 0]), [0, np.angle(np.exp(0.6j * earlier)), 0])
    assert np.allclose(np.angle(found[0, 1]), [0, 0, np.angle(np.exp(0.8j * earlier))])


@pytest.mark.parametrize(
    ("azimuth", "elevation", "l", "m"), [(90, 60, 0.5, 0), (0, 60, 0, 0.5), (225, 90, 0, 0)]
)
def test_azimuth_turns_from_north_through_east(azimuth, elevation, l, m):  # noqa: E741
    assert np.allclose(antennas.direction_cosines(azimuth, elevation), (l, m))


def test_geometry():
    line = antennas.positions("linear", 5, 2.0)
    assert np.allclose(line[:, 0], [-4, -2, 0, 2, 4])
    assert np.all(line[:, 1] == 0)
    square = antennas.positions("planar", 7, 1.0)
    assert len({tuple(one) for one in square}) == 7
    assert np.allclose(square.mean(axis=0), 0)
    assert antennas.beam_grid("planar", 24) == (4, 6)
    assert antennas.beam_grid("planar", 13) == (1, 13)
    assert antennas.beam_grid("linear", 24) == (1, 24)
    assert np.array_equal(antennas.beam_directions("planar", 1, 0.5), [[0, 0]])


def test_default_spacing_has_no_grating_lobes():
    one = beamforming(**SIZES, frequencies={"start_hz": 100e6, "step_hz": 10e6})
    spacing = np.diff(np.unique(one.positions()[:, 0])).min()
    assert np.isclose(spacing, antennas.SPEED_OF_LIGHT / 110e6 / 2)


def test_coordinates_have_units():
    one = beamforming(**SIZES, frequencies={"start_hz": 50e6, "step_hz": 1e6})
    staged, beams = computed(one)
    product = one.product(staged, beams)
    assert product.axes == ("frequency", "polarization", "beam", "time")
    assert list(product.coordinates["frequency"].values) == [50e6, 51e6]
    assert product.coordinates["frequency"].units == "Hz"
    assert np.isclose(product.coordinates["time"].values[1], 1e-6)
    assert product.coordinates["time"].units == "s"
    assert product.coordinates["l"].of("l") == ("beam",)
    np.testing.assert_array_equal(product.coordinates["l"].values[:5], [-0.5, -0.25, 0, 0.25, 0.5])
    assert product.coordinates["antenna_position"].units == "m"
    line = beamforming(**SIZES, array={"geometry": "linear"})
    assert np.array_equal(line.stage().coordinates["l"].values, np.linspace(-0.5, 0.5, 25))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"beams": 3, "samples": 2}, "antennas must be given"),
        (SIZES | {"sources": [{"l": 0.1, "azimuth_deg": 3}]}, "either l and m, or azimuth"),
        (SIZES | {"sources": [{"l": 0.9, "m": 0.9}]}, "must be at most 1"),
        ({"input": {"file": "f", "weights": "w", "samples": "s"}, "noise": 2}, "noise must not be"),
        (SIZES | {"extent": 0.9}, "at most 0.707 for a planar"),
        (SIZES | {"array": {"geometry": "ring"}}, "'linear' or 'planar'"),
    ],
)
def test_mistakes_are_named(parameters, message):
    with pytest.raises(ValidationError, match=message):
        beamforming(**parameters)


def test_beams_from_a_file(tmp_path, rng):
    path = tmp_path / "v.h5"
    voltage = np.dtype([("r", np.int8), ("i", np.int8)])
    samples = np.zeros((2, 6, 50), voltage)
    samples["r"], samples["i"] = rng.integers(-100, 100, (2, *samples.shape))
    weights = rng.normal(size=(4, 6)) + 1j * rng.normal(size=(4, 6))
    with h5py.File(path, "w") as file:
        file["samples"], file["weights"], file["short"] = samples, weights, weights[:, :5]
    one = beamforming(input={"file": path, "weights": "weights", "samples": "samples"})
    one.check()
    staged, beams = computed(one, "fp64")
    exact = np.einsum("ba,pat->pbt", weights, samples["r"] + 1j * samples["i"])
    assert beams.shape == (1, 2, 4, 50)
    assert np.abs(beams[0] - exact).max() <= 1e-13 * np.abs(exact).max()
    product = one.product(staged, beams)
    assert product.coordinates == {}
    with pytest.raises(InputError, match=r"weights \(1, 1, 4, 5\) and samples \(1, 2, 6, 50\)"):
        beamforming(input={"file": path, "weights": "short", "samples": "samples"}).check()


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
    """150 in MHz was taken for 150 Hz, at which all antennas are in phase."""
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


def test_image_of_the_mwa_covariance(real_data, tmp_path):
    """Weights times the 128 x 128 covariance; with the weights again it is the dirty image.

    The covariance reaches 1.5e5, beyond fp16, so this also shows that scaling keeps it.
    """
    with h5py.File(real_data / "vis" / "mwa128_1061315448_mini.uvh5") as file:
        first, second = (file[f"Header/ant_{end}_array"][...] for end in (1, 2))
        uvw = file["Header/uvw_array"][...]
        visibility = file["Data/visdata"][:, 0, 0, 0]
        frequency = float(np.ravel(file["Header/freq_array"][...])[0])
    number = {antenna: index for index, antenna in enumerate(np.unique([*first, *second]))}
    i, j = (np.array([number[one] for one in ends]) for ends in (first, second))
    covariance = np.zeros((128, 128), complex)
    covariance[i, j] = visibility.conj()
    covariance[j, i] = visibility  # x_2 conj(x_1)
    # A baseline is a difference of two positions: those relative to antenna 0 are all there.
    where = np.zeros((128, 3))
    where[j[i == 0]] = uvw[i == 0]
    between = where[j] - where[i]
    assert np.abs(between - uvw).max() < 0.05, "baselines in metres do not close"
    grid = antennas.beam_directions("planar", 81, 0.1)
    weights = antennas.phases(np.array([frequency]), where[:, :2], grid)[0].conj()
    with h5py.File(tmp_path / "mwa.h5", "w") as file:
        file["weights"], file["covariance"] = weights, covariance
    source = {"file": tmp_path / "mwa.h5", "weights": "weights", "samples": "covariance"}
    one = beamforming(input=source)
    staged = one.stage()
    reference = one.reference(staged)
    phase = np.exp(-2j * np.pi * frequency / antennas.SPEED_OF_LIGHT * (grid @ between[:, :2].T))
    off = i != j
    image = 2 * (phase[:, off] @ visibility[off]).real + visibility[~off].real.sum()
    for name, precision in PRECISIONS.items():
        implementation = one.argand(staged, precision, cpu())
        beams = implementation.compute(implementation.prepare(staged.operands))
        accuracy = one.assess(staged, reference, beams, precision, "cpu")
        assert accuracy.verified, (name, accuracy.reason)
        if name == "fp64":
            powers = np.einsum("bt,bt->b", beams[0, 0], weights.conj())
            # A Hermitian form is real; both are sums of 128^2 terms.
            size = np.abs(covariance).sum() * 2.0**-53 * 128
            assert np.abs(powers.imag).max() <= 4 * size
            assert np.abs(powers.real - image).max() <= 8 * size
