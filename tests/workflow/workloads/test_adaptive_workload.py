"""Adaptive beams as a workload: nulls, constraints, decibels, own data, and what is refused."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from matplotlib.figure import Figure

from tests.workflow.workloads.on_cpu import result_of
from workflow.antennas import phases
from workflow.arrays.covariances import COVARIANCES, checked_values
from workflow.data import Coordinate, Staged
from workflow.drawn import Stretched
from workflow.files.input_error import InputError
from workflow.workloads.adaptive import Adaptive, AdaptiveCase
from workflow.workloads.correlate import Correlate, CorrelateCase

SOURCES = [{"l": 0.3, "m": 0.1, "power": 30.0}, {"l": -0.2, "m": 0.35, "power": 10.0}]
DRAWN = {"antennas": 16, "beams": 9, "channels": 2, "extent": 0.1, "sources": SOURCES}


def adaptive(**parameters):
    case = AdaptiveCase.model_validate({"kind": "adaptive", **parameters})
    return Adaptive("a", case, 11)


def assessed(one, staged, result, precision="fp64"):
    return one.assess(staged, one.reference(staged), result, PRECISIONS[precision], "cpu")


def test_beams_are_left_as_they_are_and_sources_are_suppressed():
    one = adaptive(**DRAWN)
    staged = one.stage()
    w = result_of(one, staged)
    gain = np.einsum("fpbn,fpbn->fpb", w, staged.operands["weights"].conj())
    np.testing.assert_allclose(gain, 1, atol=1e-12)
    where = staged.coordinates["antenna_position"].values
    frequencies = staged.coordinates["frequency"].values
    waves = phases(frequencies, where, np.array([(0.3, 0.1), (-0.2, 0.35)]))
    leaked = np.abs(np.einsum("fpbn,fsn->fpbs", w, waves)) ** 2
    steering = staged.operands["weights"] / 16
    conventional = np.abs(np.einsum("fpbn,fsn->fpbs", steering, waves)) ** 2
    assert 1e2 * leaked.max() < conventional.max()
    found = assessed(one, staged, w)
    # Against the conventional beams, whose output has more of the sources.
    worse = assessed(one, staged, np.broadcast_to(steering, w.shape).copy())
    assert worse.verdict == "wrong"
    assert found.measures["output_sinr_db"] > worse.measures["output_sinr_db"] + 3
    assert worse.measures["sinr_loss_db"] > 3
    assert found.measures["sinr_loss_db"] < 1e-6


def test_loading_and_times_are_those_of_numpy(tmp_path):
    one = adaptive(input=source(own(tmp_path)), beams=4, loading=0.3)
    staged = one.stage()
    w = result_of(one, staged)
    r, c = staged.operands["covariances"].mean(axis=0)[0, 1], staged.operands["weights"][1, 0]
    r = r + 0.3 * np.trace(r).real / 6 * np.eye(6)
    above = c @ np.linalg.inv(r)
    np.testing.assert_allclose(w[1, 0], above / np.sum(above * c.conj(), -1)[:, None], rtol=1e-9)
    assert assessed(one, staged, w).verified


def test_what_is_not_definite_has_no_weights(tmp_path):
    path = own(tmp_path)
    with h5py.File(path, "r+") as file:
        file["r"][:, 0, 2] = -np.eye(6) + 0j
    one = adaptive(input=source(path), beams=2)
    staged = one.stage()
    w = result_of(one, staged, "fp32")
    assert np.isnan(w[2]).all()
    assert np.isfinite(w[:2]).all()
    assert assessed(one, staged, w, "fp32").verified
    w[2] = 1
    assert "not positive definite" in assessed(one, staged, w, "fp32").reason
    w[0] = np.nan
    assert "more loading may help" in assessed(one, staged, w, "fp32").reason


def own(folder):
    """Covariances of two times in a file, with where the antennas stand, and weights."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal((2, 1, 3, 6, 8)) + 1j * rng.standard_normal((2, 1, 3, 6, 8))
    with h5py.File(folder / "own.h5", "w") as file:
        file["r"] = v @ v.conj().swapaxes(-1, -2) / 8
        file["f"] = 1e8 + 1e6 * np.arange(3)
        file["w"] = rng.standard_normal((1, 1, 5, 6)) + 1j
        file["short"] = rng.standard_normal((1, 1, 5, 4)) + 1j
        file["oblong"] = v
        for name in ("east", "north"):
            file[name] = rng.uniform(-20, 20, 6)
    return folder / "own.h5"


def source(path, **changes):
    places = {n: {"dataset": n, "units": "m", "axis": "antenna"} for n in ("east", "north")}
    given = {
        "file": path, "covariances": "r",
        "coordinates": {**places, "frequency": {"dataset": "f", "units": "Hz"}},
    }  # fmt: skip
    return given | changes


@pytest.mark.parametrize("part", ["upper", "lower", "skew", "r"])
def test_covariances_that_are_not_hermitian(tmp_path, part):
    """Cholesky reads the lower triangle: of the upper one alone it took the diagonal."""
    x = np.random.default_rng(5).standard_normal((4, 50, 2)) @ [1, 1j]
    r = x @ x.conj().T / 50
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["upper"], file["lower"] = np.triu(r), np.tril(r)
        file["skew"], file["r"] = r + np.triu(r, 1), r
        file["w"] = np.ones((3, 4), np.complex64)
    source = {"file": str(tmp_path / "r.h5"), "covariances": part, "weights": "w"}
    one = adaptive(input=source)
    if part == "r":
        one.stage()
        return
    with pytest.raises(InputError, match=r"^input\.covariances: covariances must be Hermitian"):
        one.stage()


@pytest.mark.parametrize("axis", [0, 2, 3])
def test_covariances_that_come_in_stretches_are_checked_as_they_are_read(axis):
    """A second pass would read a large file again; stretches of rows are of a large matrix."""
    right = np.eye(4) + np.zeros((2, 1, 4, 4, 4), np.complex64)
    wrong = right.copy()
    wrong[1, 0, 3, 0, 1] = 1
    passes = []

    def stretches(values):
        passes.append(axis)
        for start in range(0, values.shape[axis], 2):
            yield start, values.take(range(start, min(start + 2, values.shape[axis])), axis)

    def staged(values):
        drawn = Stretched(values.shape, values.dtype, axis, 2, lambda: stretches(values))
        axes = {"covariances": COVARIANCES.axes}
        return checked_values(Staged({}, axes, drawn={"covariances": drawn}))

    np.testing.assert_array_equal(staged(right).drawn["covariances"].held(), right)
    assert len(passes) == (2 if axis == 3 else 1)
    said = r"^input\.covariances: "
    said += "from channel 2 on, covariances .* channel 1 " if axis == 2 else ".* of channel 3 "
    with pytest.raises(InputError, match=said):
        staged(wrong).drawn["covariances"].held()


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3])
def test_antennas_without_power_are_refused(axis):
    """Beams of the least power consisted of them: their own is 0."""
    values = np.eye(4) + np.zeros((2, 1, 3, 4, 4), np.complex64)
    values[1, 0, 1, 2] = values[1, 0, 1, :, 2] = 0
    values[:, 0, 0] = 0  # of no antenna at all

    def stretches():
        for start in range(values.shape[axis]):
            yield start, values.take([start], axis)

    def found():
        coordinates = {"antenna": Coordinate(np.array(list("abcd")))}
        staged = Staged({"covariances": values}, {"covariances": COVARIANCES.axes}, coordinates)
        if axis is None:
            return checked_values(staged)
        drawn = Stretched(values.shape, values.dtype, axis, 1, stretches)
        staged = replace(staged, operands={}, drawn={"covariances": drawn})
        return checked_values(staged).drawn["covariances"].held()

    found()  # which has power at another time
    values[0, 0, 1, 2, 2] = 0
    with pytest.raises(InputError, match=r"antennas \['c'\] have no power in 1 of 3 channels, and"):
        found()


def test_weights_of_a_file_need_no_places(tmp_path):
    given = {"file": own(tmp_path), "covariances": "r", "weights": "w"}
    one = adaptive(input=given)
    one.check()
    staged = one.stage()
    w = result_of(one, staged, "fp32")
    assert w.shape == (3, 1, 5, 6)
    assert assessed(one, staged, w, "fp32").verified
    axes = Figure().subplots()
    one.picture(one.product(staged, w), axes)
    assert axes.get_xlabel() == "antenna number"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": "short"}, "weights must be of 3 frequencies or 1"),
        ({"covariances": "oblong"}, "square with up to 128 antennas, got 6 antennas and 8"),
    ],
)
def test_operands_that_do_not_fit(tmp_path, changes, said):
    given = {"file": own(tmp_path), "covariances": "r", "weights": "w", **changes}
    with pytest.raises(InputError, match=said):
        adaptive(input=given).check()


def test_weights_keep_the_times_that_they_are_averaged_over(tmp_path):
    with h5py.File(tmp_path / "r.h5", "w") as file:
        file["r"] = np.broadcast_to(np.eye(4), (3, 4, 4)).astype(np.complex64)
        file["w"] = np.ones((2, 4), np.complex64)
        file["t"] = np.array([0.0, 10.0, 20.0])
        file["t"].attrs["units"] = np.bytes_("s since 2026-11-28T10:00:00")
    source = {
        "file": str(tmp_path / "r.h5"), "covariances": "r", "weights": "w",
        "axes": {"covariances": ["time", "antenna", "column"], "weights": ["beam", "antenna"]},
        "coordinates": {"time": "t"},
    }  # fmt: skip
    one = adaptive(input=source)
    staged = one.stage()
    kept = one.product(staged, result_of(one, staged)).coordinates["averaged_time"]
    assert (kept.values.tolist(), kept.units) == ([0.0, 10.0, 20.0], "s")
    assert kept.long_name.startswith("time since 2026-11-28T10:00:00, of covariances whose mean")


def test_flags_are_left_out_of_the_mean_over_times(tmp_path):
    path = own(tmp_path)
    with h5py.File(path, "r+") as file:
        r = file["r"][...]
        r[1, :, :, 0, 2] = r[1, :, :, 2, 0] = np.nan
        file["r"][...] = r
    staged = adaptive(beams=4, input=source(path, flagged="zero")).stage()
    mean = staged.operands["covariances"].mean(axis=0)
    np.testing.assert_allclose(mean, np.nanmean(r, axis=0), rtol=4 * np.finfo(float).eps)


def test_flags_in_the_mean_over_times_are_said(tmp_path):
    given = source(own(tmp_path), flagged="zero")
    one = adaptive(beams=4, input=given)
    said = "what is flagged at some of the 2 times is left out of their mean"
    assert one.remark(one.stage()) == said
    axes = ["time", "polarization", "frequency", "antenna", "column"]
    part = {"axes": axes, "select": {"covariances": {"time": [1]}}}
    for silent in (given | part, source(own(tmp_path))):
        one = adaptive(beams=4, input=silent)
        assert one.remark(one.stage()) == ""


def test_covariances_of_visibilities_and_a_line_of_antennas():
    drawn = {"antennas": 8, "samples": 64, "sources": SOURCES, "array": {"geometry": "linear"}}
    case = CorrelateCase.model_validate({"kind": "correlate", **drawn})
    upstream = Correlate("v", case, 3)
    outline = upstream.product_outline(upstream.outline())
    axes = {"covariances": ["frequency", "time", "antenna", "column"]}
    given = {"covariances": {"workload": "v"}, "axes": axes}
    chained = adaptive(input=given, beams=3)
    chained.check({"v": outline})
    assert chained.result_shape(chained.outline({"v": outline})) == (1, 1, 3, 8)
    line = adaptive(antennas=8, beams=3, array={"geometry": "linear"})
    staged = line.stage()
    axes = Figure().subplots()
    line.picture(line.product(staged, result_of(line, staged, "fp32")), axes)
    assert axes.get_xlabel() == "direction cosine l (east)"
