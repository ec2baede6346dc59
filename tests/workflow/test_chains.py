"""Products as operands of other workloads: whole or selected, of any depth, also across shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.fft
from input_files import put
from test_shards import LOG, Pipeline

from tests.workflow.chained_cases import BEAMS, CHAIN, study_of
from tests.workflow.whole_files import read_staged
from workflow.data import Coordinate, Product
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.shards import shards
from workflow.steps.staging import stage
from workflow.storage.certificates import CERTIFICATE_KEYS
from workflow.storage.products import read_product, write_product
from workflow.study import outlined


def run(study: Any, folder: Path, count: int = 1) -> dict[str, Product]:
    """Each workload of a study that the check takes, after those whose products it reads."""
    check_study(study)
    paths: dict[str, Path] = {}
    for name in study.names:
        files = [paths[other] for other in study.upstream(name)]
        pipeline = Pipeline(folder / name, study.workload(name), files)
        if count > 1:
            pipeline.sharded(count)
        else:
            pipeline.whole()
        paths[name] = pipeline.product
    return {name: read_product(path) for name, path in paths.items()}


def whole_as_its_shards(chain: dict[str, Any], folder: Path) -> dict[str, Product]:
    """The products of a chain, which are those of the same chain in two shards each."""
    whole = run(study_of(chain), folder / "whole")
    sharded = {name: {**case, "shards": 2} for name, case in chain.items()}
    parts = run(study_of(sharded), folder / "parts", 2)
    for name, product in whole.items():
        np.testing.assert_array_equal(product.data, parts[name].data)
        assert product.axes == parts[name].axes
    return whole


@pytest.mark.parametrize("count", [1, 2])
def test_a_chain_of_four(tmp_path: Path, count: int) -> None:
    """The inverse of a transform brings the beams back, on their axes and coordinates."""
    sharded = {name: {**case, "shards": count} for name, case in CHAIN.items()}
    study = study_of(sharded)
    found = run(study, tmp_path, count)
    beams, spectra, back = found["beams"], found["spectra"], found["back"]
    exact = scipy.fft.fft(beams.data.astype(complex))
    assert np.abs(spectra.data - exact).max() <= 1e-12 * np.abs(exact).max()
    assert spectra.axes == ("frequency", "polarization", "beam", "time_frequency")
    step = 1 / beams.coordinates["time"].values[1] / 16
    hertz = spectra.coordinates["time_frequency"]
    np.testing.assert_allclose(hertz.values, step * np.arange(16), rtol=1e-9)
    assert hertz.units == "Hz"
    assert back.axes == ("frequency", "beam", "time")
    expected = beams.data[1:5:2, 1][:, [3, 0]]
    assert np.abs(back.data - expected).max() <= 1e-12 * np.abs(expected).max()
    for name, part in (("frequency", slice(1, 5, 2)), ("l", [3, 0]), ("m", [3, 0])):
        values = beams.coordinates[name].values[part]
        np.testing.assert_array_equal(back.coordinates[name].values, values)
    assert back.coordinates["l"].of("l") == ("beam",)
    np.testing.assert_allclose(
        back.coordinates["time"].values, beams.coordinates["time"].values, rtol=1e-9
    )
    named = found["matrices"].coordinates
    for axis in "mn":  # their beams, and the directions of these
        np.testing.assert_array_equal(named[axis].values, [3, 0])
        for name in "lm":
            values = beams.coordinates[name].values[[3, 0]]
            np.testing.assert_array_equal(named[f"{axis}_{name}"].values, values)
    gram = expected.astype(complex) @ expected.conj().swapaxes(1, 2)
    assert np.abs(found["matrices"].data - gram).max() <= 1e-12 * np.abs(gram).max()
    path = tmp_path / "back" / "products" / "w.h5"
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path) as shown:
        assert set(shown["spectrum"].coords) >= {"frequency", "beam", "time", "l", "m"}
        assert shown["frequency"].attrs["units"] == "Hz"


@pytest.mark.parametrize("shift", [False, True])
def test_a_transform_keeps_the_time_that_its_phases_count_from(tmp_path: Path, shift: bool) -> None:
    """The product of an inverse transform has the times again, with their date."""
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["v"] = np.ones((2, 8), np.complex64)
        file["t"] = 2.5 + 0.25 * np.arange(8)
        file["t"].attrs["units"] = np.bytes_("ms since 2026-11-28T10:00:00")
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v", "axes": ["antenna", "time"],
        "coordinates": {"time": "t"},
    }  # fmt: skip
    there = {"kind": "dft", "axis": "time", "shift": shift, "input": source}
    spectra = {"samples": {"workload": "a"}}
    back = {"kind": "dft", "axis": "frequency", "inverse": True, "input": spectra}
    study = study_of({"a": there} if shift else {"a": there, "b": back})
    found = run(study, tmp_path)
    first = found["a"].coordinates["selected_time"]
    assert (first.values.tolist(), first.units) == ([2.5], "ms")
    said = "time since 2026-11-28T10:00:00"
    assert first.long_name == f"{said}, of the first sample that is transformed"
    along_t = {**source, "axes": ["antenna", "t"], "coordinates": {"t": "t"}}
    other = {**there, "axis": "t", "input": along_t}
    one = study_of({"a": other}).workload("a")
    assert "selected_t" in one.product_outline(one.outline()).coordinates
    if not shift:
        times = found["b"].coordinates["time"]
        np.testing.assert_allclose(times.values, 2.5 + 0.25 * np.arange(8), rtol=1e-15)
        assert (times.units, times.long_name) == ("ms", said)
        assert "selected_time" not in found["b"].coordinates


def test_the_selected_entry_of_both_operands_stays_beside_their_product(tmp_path: Path) -> None:
    """Such as the time of matrices; nothing stays where they are of different ones."""
    cases = {
        f"c{a}{b}": {
            "kind": "gemm", "op_a": "T",
            "input": {
                "a": {"workload": "beams"}, "b": {"workload": "beams"},
                "axes": {"a": ["batch", "k", "m", "time"], "b": ["batch", "k", "n", "time"]},
                "select": {"a": {"time": a}, "b": {"time": b}},
            },
        }
        for a, b in ((3, 3), (3, 4))
    }  # fmt: skip
    study = study_of({"beams": BEAMS, **cases})
    found = run(study, tmp_path)
    kept = found["c33"].coordinates["selected_time"]
    expected = found["beams"].coordinates["time"].values[3:4]
    assert (kept.values.tolist(), kept.units) == (expected.tolist(), "s")
    assert "selected_time" not in found["c34"].coordinates


def test_sizes_are_known_before_anything_runs(tmp_path: Path) -> None:
    study = study_of(CHAIN)
    made = run(study, tmp_path)
    for name in study.names:
        workload, outline = outlined(study.chain(name))
        foretold = workload.product_outline(outline)
        assert foretold.data.shape == made[name].data.shape
        assert foretold.axes == made[name].axes
        assert set(foretold.coordinates) == set(made[name].coordinates)
    assert len(study.chain("matrices")) == 4


@pytest.mark.parametrize("most", [1, 300, 1 << 20])
def test_stretches_are_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, most: int
) -> None:
    """However small they are, with a selection and a transposition."""
    data = rng.standard_normal((5, 6, 7, 2)).view(complex)[..., 0]
    path = product_file(tmp_path, data, ("time", "beam", "frequency"))
    monkeypatch.setattr("workflow.inputs.product_operand.STRETCH_BYTES", most)
    case = {
        "kind": "dft", "axis": "beam",
        "input": {
            "samples": {"workload": "p"},
            "select": {"samples": [[3, 0, 4], [5, 3, 1], ":"]},
        },
    }  # fmt: skip
    one = study_of({"p": BEAMS, "x": case}).workload("x")
    stage(one, [path], tmp_path / "x.h5", LOG)
    found = read_staged(tmp_path / "x.h5")
    assert found.axes["samples"] == ("time", "frequency", "beam")
    expected = np.moveaxis(data[[3, 0, 4]][:, [5, 3, 1]], 1, -1)
    np.testing.assert_array_equal(found.operands["samples"], expected)


def product_file(
    folder: Path, data: Any, axes: tuple[str, ...], coordinates: dict[str, Coordinate] | None = None
) -> Path:
    certificate = dict.fromkeys(CERTIFICATE_KEYS, "") | {"verdict": "verified"}
    path = folder / "p.h5"
    product = Product("c", data, axes, coordinates or {}, "t", "V")
    write_product(path, product, certificate, workload="p", kind="gemm")
    return path


def test_a_file_and_a_product_together(tmp_path: Path, rng: np.random.Generator) -> None:
    data = rng.standard_normal((3, 4, 2), dtype=np.float32).view(np.complex64)[..., 0]
    put(tmp_path / "w.h5", w=np.eye(2, 3, dtype=np.complex64))
    source = {
        "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "p"},
        "axes": {"samples": ["antenna", "time"]},
    }  # fmt: skip
    study = study_of({"p": BEAMS, "x": {"kind": "beamforming", "input": source}})
    path = product_file(tmp_path, data, ("m", "n"))
    stage(study.workload("x"), [tmp_path / "w.h5", path], tmp_path / "x.h5", LOG)
    found = read_staged(tmp_path / "x.h5")
    np.testing.assert_array_equal(found.operands["samples"], data[None, None])
    assert len(found.attributes["products"]["p"]) == 64
    assert found.units == {"samples": "V"}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_products_with_values_that_are_not_finite(tmp_path: Path, value: float) -> None:
    data = np.array([[1, value, 2]], complex)
    path = product_file(tmp_path, data, ("m", "n"))
    case = {"kind": "dft", "axis": "n", "input": {"samples": {"workload": "p"}}}
    with pytest.raises(
        InputError, match=r"input\.samples has . NaN and . Inf among 3 values; allow"
    ):
        study_of({"p": BEAMS, "x": case}).workload("x").stage({"p": path})
    case["allow_nonfinite"] = True
    staged = study_of({"p": BEAMS, "x": case}).workload("x").stage({"p": path})
    np.testing.assert_array_equal(staged.operands["samples"], data)


READERS = {
    "state": (
        {"kind": "statevector", "circuit": {"name": "qft", "qubits": 4}, "initial": "random"},
        {"kind": "statevector", "circuit": {"name": "ghz", "qubits": 4},
         "input": {"state": {"workload": "first"}}},
        (16,),
    ),
    "channel": (
        {"kind": "gemm", "batch": 3, "m": 6, "n": 2, "k": 8},
        {"kind": "mimo", "snr_db": [30.0], "symbols": 5,
         "input": {"channel": {"workload": "first"},
                   "axes": {"channel": ["frequency", "receiver", "transmitter"]}}},
        (1, 1, 3, 2, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_states_and_channels_are_products_too(name: str, tmp_path: Path) -> None:
    first, second, shape = READERS[name]
    study = study_of({"first": first, "second": second})
    assert run(study, tmp_path)["second"].data.shape == shape


def test_shards_of_a_chain_need_no_more_than_the_axes_of_the_product() -> None:
    cases = {**CHAIN, "spectra": {**CHAIN["spectra"], "shards": 6}}
    study = study_of(cases)
    check_study(study)
    workload, outline = outlined(study.chain("spectra"))
    assert workload.split_axes(outline.axes) == ("frequency", "polarization", "beam")
    assert len(shards(6)) == len(study.parts("spectra"))


def test_the_state_of_one_circuit_begins_another(tmp_path: Path) -> None:
    qft = {"kind": "statevector", "circuit": {"name": "qft", "qubits": 5}, "initial": "random"}
    again = {
        "kind": "statevector",
        "circuit": {"name": "qft", "qubits": 5},
        "input": {"state": {"workload": "first"}},
    }
    study = study_of({"first": qft, "second": again, "third": {**again, "input": {"state": {
        "workload": "second"}}}})  # fmt: skip
    found = run(study, tmp_path)
    # Two transforms reverse the order of the states but the first: |x> becomes |-x>.
    staged = study.workload("first").stage().operands["state"]
    reversed_states = staged[-np.arange(32) % 32]
    assert np.abs(found["second"].data - reversed_states).max() < 1e-12


def test_a_file_that_changed_since_the_check(tmp_path: Path) -> None:
    path = tmp_path / "w.h5"
    source = {"file": str(path), "weights": "w", "samples": {"workload": "p"}}
    one = study_of({"p": BEAMS, "x": {"kind": "beamforming", "input": source}}).workload("x")
    product = product_file(tmp_path, np.ones((3, 4), complex), ("antenna", "time"))
    put(path, w=np.ones((2, 5), complex))
    mistake = r"beam 2, antenna 5\) and samples .* do not fit: antenna is 5 of weights and 3 of"
    with pytest.raises(InputError, match=mistake):
        stage(one, [path, product], tmp_path / "x.h5", LOG)
