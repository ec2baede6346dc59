"""Beamforming as a workload: geometry, waves, files, coordinates and mistakes."""

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from input_files import put

from tests.workflow.workloads.on_cpu import computed
from workflow import antennas
from workflow.config.beamforming_case import BeamformingCase
from workflow.data import power
from workflow.files.input_error import InputError
from workflow.workloads.beamforming import Beamforming

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


def test_beams_from_a_file(tmp_path, rng):
    path = tmp_path / "v.h5"
    voltage = np.dtype([("r", np.int8), ("i", np.int8)])
    samples = np.zeros((2, 6, 50), voltage)
    samples["r"], samples["i"] = rng.integers(-100, 100, (2, *samples.shape))
    weights = rng.normal(size=(4, 6)) + 1j * rng.normal(size=(4, 6))
    put(path, samples=samples, weights=weights, short=weights[:, :5], three=np.stack([weights] * 3))
    axes = {
        "weights": ["polarization", "beam", "antenna"],
        "samples": ["polarization", "antenna", "time"],
    }
    given = {"file": path, "weights": "weights", "samples": "samples"}
    one = beamforming(input={**given, "axes": {"samples": axes["samples"]}})
    one.check()
    staged, beams = computed(one, "fp64")
    exact = np.einsum("ba,pat->pbt", weights, samples["r"] + 1j * samples["i"])
    assert beams.shape == (1, 2, 4, 50)
    assert np.abs(beams[0] - exact).max() <= 1e-13 * np.abs(exact).max()
    product = one.product(staged, beams)
    assert product.coordinates == {}
    with pytest.raises(InputError, match="antenna is 5 of weights and 6 of samples"):
        beamforming(
            input={**given, "weights": "short", "axes": {"samples": axes["samples"]}}
        ).check()
    three = {**given, "weights": "three", "axes": axes}
    with pytest.raises(InputError, match="polarization is 3 of weights and 2 of samples"):
        beamforming(input=three).check()


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
    put(tmp_path / "mwa.h5", weights=weights, covariance=covariance)
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
