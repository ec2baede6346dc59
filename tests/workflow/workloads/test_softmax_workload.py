"""Softmax as a workload: logits, probabilities of beams, pictures, files and mistakes."""

import logging
from dataclasses import replace

import h5py
import numpy as np
import pytest
import scipy.special
from argand import PRECISIONS
from argand.device import cpu
from input_files import put

from tests.kernels.precisions import SOFTMAX
from tests.workflow.whole_files import read_staged
from tests.workflow.workloads.on_cpu import result_of
from workflow.config.beamforming_case import BeamformingCase
from workflow.data import Coordinate, Product, power
from workflow.files.input_error import InputError
from workflow.inputs.provenance import MADE_OF
from workflow.inputs.source_attributes import ATTRIBUTES
from workflow.steps.staging import stage
from workflow.storage.certificates import CERTIFICATE_KEYS
from workflow.storage.products import write_product
from workflow.workloads.beamforming import Beamforming
from workflow.workloads.softmax import Softmax, SoftmaxCase


def softmax(**parameters):
    return Softmax("p", SoftmaxCase.model_validate({"kind": "softmax", **parameters}), 5)


def write(path, product):
    said = {"file": {"telescope": "Effelsberg"}}
    certificate = dict.fromkeys(CERTIFICATE_KEYS, "") | {"verdict": "verified", ATTRIBUTES: said}
    write_product(path, product, certificate, workload="beams", kind="beamforming")
    return path


@pytest.fixture
def beams(tmp_path):
    """The product of a beamforming workload whose source is where beam 7 points."""
    parameters = {
        "kind": "beamforming", "channels": 2, "beams": 12, "antennas": 16, "samples": 20,
        "polarizations": 2,
    }  # fmt: skip
    case = BeamformingCase.model_validate(parameters)
    l, m = Beamforming("beams", case, 1).directions()[7]  # noqa: E741
    source = {"l": l, "m": m, "power": 10.0}
    one = Beamforming(
        "beams", BeamformingCase.model_validate(parameters | {"sources": [source]}), 1
    )
    staged = one.stage()
    implementation = one.argand(staged, PRECISIONS["fp32"], cpu())
    result = implementation.compute(implementation.prepare(staged.operands))
    return write(tmp_path / "beams.h5", one.product(staged, result))


def test_scale_is_the_standard_deviation():
    x = softmax(rows=100, columns=1000, scale=7).stage().operands["x"]
    assert x.dtype == np.float32
    assert abs(x.std() / 7 - 1) < 5 / (2 * x.size) ** 0.5


def test_beam_power_of_another_workload(beams):
    one = softmax(input={"workload": "beams"})
    assert one.depends_on() == ("beams",)
    staged = one.stage({"beams": beams})
    assert staged.axes["x"] == ("frequency", "polarization", "time", "beam")
    assert staged.operands["x"].shape == (2, 2, 20, 12)
    with h5py.File(beams) as file:
        voltage = file["entry/data/beams"][...]
    exact = np.moveaxis(power(voltage.astype(complex)), 2, -1)
    exact /= exact.mean()
    # The power is 3 roundings off, the factor and the product one each.
    assert np.abs(staged.operands["x"] / exact - 1).max() <= 6 * 2.0**-24
    found = result_of(one, staged, "fp32")
    assert np.abs(found.sum(axis=-1) - 1).max() <= 20 * 2.0**-24
    assert found.mean(axis=(0, 1, 2)).argmax() == 7
    accuracy = one.assess(staged, one.reference(staged), found, PRECISIONS["fp32"], "cpu")
    assert accuracy.verified, accuracy.reason
    product = one.product(staged, found)
    assert product.coordinates["time"].units == "s"
    assert len(staged.attributes["source_sha256"]) == 64
    assert one.shape(staged, PRECISIONS["fp32"]).rows == 80


@pytest.mark.parametrize("most", [1, 4000, 10_000])
def test_beam_power_in_stretches_of_the_product(beams, tmp_path, monkeypatch, most):
    """The product of 7680 bytes is read and staged one stretch at a time, with the same values."""
    from workflow.inputs import product_operand

    one = softmax(input={"workload": "beams"})
    whole = one.stage({"beams": beams})
    monkeypatch.setattr(product_operand, "STRETCH_BYTES", most)
    held = []
    original = product_operand.read_product

    def spy(path, part):
        product = original(path, part=part)
        held.append(product.data.nbytes)
        return product

    monkeypatch.setattr(product_operand, "read_product", spy)
    log = logging.getLogger("test")
    stage(one, [beams], tmp_path / "x.h5", log)
    assert max(held) <= max(most, 384), "a time of all beams takes 384 bytes"
    assert sum(held) == (7680 if most > 7680 else 3 * 7680)
    found = read_staged(tmp_path / "x.h5")
    # The mean is summed up in another order, which may round the factor the other way.
    assert np.abs(found.operands["x"] / whole.operands["x"] - 1).max() <= 2.0**-23
    assert found.axes == whole.axes
    assert found.attributes["nonfinite"] == whole.attributes["nonfinite"]
    np.testing.assert_array_equal(found.operands["x"], one.stage({"beams": beams}).operands["x"])


def test_beam_probabilities_are_drawn_over_time(beams):
    import matplotlib.figure

    one = softmax(input={"workload": "beams"})
    staged = one.stage({"beams": beams})
    made = staged.attributes[MADE_OF]["x"]
    assert made[ATTRIBUTES] == {"file": {"telescope": "Effelsberg"}}
    product = one.product(staged, result_of(one, staged, "fp32"))
    for unit in ("s", "ms"):  # of a file's times too, whatever their unit is
        axes = matplotlib.figure.Figure().subplots()
        length = len(product.coordinates["time"].values)
        times = Coordinate(1e-3 * np.arange(1, length + 1), unit, "time")
        one.picture(replace(product, coordinates={"time": times}), axes)
        assert axes.get_ylabel() == "beam number"
        size = {"s": 1, "ms": 1e-3}[unit]
        assert axes.get_xlabel() == "time (ms)"
        edges = [0.5 * size, (length + 0.5) * size, -0.5, product.data.shape[-1] - 0.5]
        assert axes.images[0].get_extent() == pytest.approx(edges)
    times.values[-1] += 9  # after which entries are counted
    one.picture(replace(product, coordinates={"time": times}), axes)
    assert axes.get_xlabel() == "entry along time, whose steps are not equal"
    assert axes.images[-1].get_extent()[:2] == [-0.5, length - 0.5]


def test_beams_that_are_detected_are_power_already(tmp_path):
    """Their power is not squared again."""
    data = np.random.default_rng(1).chisquare(2, (3, 4, 5)).astype("f4")
    axes = ("polarization", "beam", "time")
    path = write(tmp_path / "p.h5", Product("power", data, axes, {}, "t"))
    found = softmax(input={"workload": "beams"}, scale=2.0).stage({"beams": path}).held()
    expected = 2 * data.swapaxes(1, 2) / data.mean(dtype=float)
    np.testing.assert_allclose(found.operands["x"], expected, rtol=2**-22)  # two roundings of fp32
    path = write(tmp_path / "s.h5", Product("power", data, ("stokes", *axes[1:]), {}, "t"))
    with pytest.raises(InputError, match=r"has Stokes parameters; take one .* \{stokes: I\}"):
        softmax(input={"workload": "beams"}).stage({"beams": path})


def test_a_product_without_beams_is_refused(tmp_path):
    data = np.ones((2, 3), np.complex64)
    path = write(tmp_path / "c.h5", Product("c", data, ("m", "n"), {}, "t"))
    with pytest.raises(InputError, match=r"must have beams.*axes \['m', 'n'\]"):
        softmax(input={"workload": "beams"}).stage({"beams": path})
    silent = Product("b", 0 * data, ("time", "beam"), {}, "t")
    with pytest.raises(InputError, match="the mean beam power of 'beams' must be above 0, got 0"):
        softmax(input={"workload": "beams"}).stage({"beams": write(tmp_path / "z.h5", silent)})


@pytest.mark.parametrize("precision", SOFTMAX)
def test_logits_of_a_file(tmp_path, precision, rng):
    logits = rng.normal(size=(3, 4, 11)) * 3
    put(tmp_path / "x.h5", x=logits, z=logits + 0j)
    one = softmax(input={"file": tmp_path / "x.h5", "x": "x"})
    one.check()
    staged = one.stage()
    found = result_of(one, staged, precision)
    assert staged.operands["x"].dtype == np.float64
    assert found.shape == (3, 4, 11)
    accuracy = one.assess(staged, one.reference(staged), found, PRECISIONS[precision], "cpu")
    assert accuracy.verified, accuracy.reason
    if precision == "fp64":
        exact = scipy.special.softmax(logits, axis=-1)
        assert np.abs(found / exact - 1).max() <= 1e-13
    with pytest.raises(InputError, match=r"input\.x: /z must be real"):
        softmax(input={"file": tmp_path / "x.h5", "x": "z"}).check()


def test_minus_infinity_is_let_through_on_request(tmp_path):
    put(tmp_path / "x.h5", x=np.array([[0, -np.inf, 1]], np.float32))
    source = {"file": tmp_path / "x.h5", "x": "x"}
    with pytest.raises(
        InputError, match=r"input.x has 0 NaN and 1 Inf among 3 values, .* column 1 of"
    ):
        softmax(input=source).stage()
    one = softmax(input=source, allow_nonfinite=True)
    staged = one.stage()
    found = result_of(one, staged, "fp32")
    assert found[0, 1] == 0
    assert one.assess(staged, one.reference(staged), found, PRECISIONS["fp32"], "cpu").verified
