"""Feeds of adaptive beams, by names and numbers, and channels within coarse ones on two axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study


@pytest.mark.parametrize(
    ("voltages", "rows", "samples", "wrong"),
    [
        (":", "3:6", 0, "0, got 1"), (":", "0:3", 1, "1, got 0"), (1, ":", [0], "0, got 1"),
        (":", "3:6", ":", ""), (":", "3:6", 1, ""), ([1], ":", 1, ""),
        ("1:", ":", "1:", ""),
    ],
)  # fmt: skip
def test_adaptive_weights_are_of_the_feed_whose_number_their_inputs_have(
    tmp_path: Path, voltages: Any, rows: str, samples: Any, wrong: str
) -> None:
    """Without names weights of feed 1 were multiplied with samples of feed 0.

    With all samples they are, as those that say nothing of feeds, for each of them.
    """
    workloads = adaptive_beams(tmp_path, 2)
    workloads["vis"]["input"]["select"] = {"voltages": {"polarization": voltages}}
    inputs = {"covariances": {"input": rows, "conjugated_input": rows}}
    workloads["w"]["input"]["select"] = inputs
    workloads["b"]["input"]["select"] = {"samples": {"polarization": samples}}
    study = study_of(workloads)
    if wrong:
        with pytest.raises(StudyError, match=f"operand along polarization, {wrong}; select"):
            check_study(study)
        return
    found = run(study, tmp_path / "run")
    for name in ("w", "b") if samples != ":" else ("w",):
        assert found[name].coordinates["polarization"].values.tolist() == [1]
    assert samples != ":" or "polarization" not in found["b"].coordinates


def test_weights_of_one_feed_or_channel_say_so_of_several_that_nothing_tells(
    tmp_path: Path,
) -> None:
    """The product's own coordinates did not fit, which was all that was said."""
    workloads = adaptive_beams(tmp_path, 2)
    known = {**workloads["vis"]["input"]["coordinates"], "polarization": ["x", "y"]}
    workloads["vis"]["input"] |= {
        "coordinates": known, "select": {"voltages": {"polarization": "y"}}}  # fmt: skip
    two = "input.samples: nothing tells its 2 entries along {}, and another operand is of {} alone"
    with pytest.raises(StudyError, match=two.format("polarization", "y")):
        check_study(study_of(workloads))
    put(tmp_path / "bands.h5", v=np.ones((2, 3, 8), np.complex64))
    axes = {"samples": ["frequency", "antenna", "time"]}
    workloads["b"]["input"] |= {"file": str(tmp_path / "bands.h5"), "axes": axes}
    with pytest.raises(StudyError, match=two.format("frequency", "100000000 Hz")):
        check_study(study_of(workloads))


PRODUCTS = {"adaptive": "weights", "solve": "x"}


@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("names", ["", "abc"])
def test_weights_are_of_the_antennas_and_the_feed_of_the_visibilities_that_make_them(
    tmp_path: Path, kind: str, names: str
) -> None:
    """Weights that `solve` made were of any antennas, and those in another order of any."""
    workloads = adaptive_beams(tmp_path, 2)
    vis, beams = (workloads[name]["input"] for name in ("vis", "b"))
    if names:
        beams["coordinates"] = {"antenna": list(names), "polarization": ["x", "y"]}
        vis["coordinates"] = {**vis["coordinates"], **beams["coordinates"]}
    rows = {"input": "3:6", "conjugated_input": "3:6"}
    workloads["w"]["input"]["select"] = {"covariances": rows}
    if kind == "solve":
        put(tmp_path / "c.h5", c=np.eye(3, 4, dtype=np.complex64))
        workloads["w"] = {"kind": "solve", "input": {
            "a": {"workload": "vis"}, "file": str(tmp_path / "c.h5"), "b": "c",
            "select": {"a": {"integration": 0, **rows}},
        }}  # fmt: skip
        beams["axes"]["weights"] = ["frequency", "antenna", "beam"]
    for antennas, feed, wrong in (
        ([2, 1, 0], 1, "antenna, a to c, got c to a" if names else "antenna, 0 to 2, got 2 to 0"),
        ([0, 1, 2], 0, "polarization, x, got y" if names else "polarization, 0, got 1"),
        ([0, 1, 2], 1, ""),
    ):
        vis["select"] = {"voltages": {"antenna": antennas}}
        beams["select"] = {"samples": {"polarization": feed}}
        if wrong:
            with pytest.raises(StudyError, match=f"operand along {wrong}; select"):
                check_study(study_of(workloads))
    beams.pop("coordinates", None)  # what the weights tell is the samples' too
    path = tmp_path / "run/w/products/w.h5"
    found = [run(study_of(workloads), tmp_path / "run")["b"].coordinates]
    with h5py.File(path, "a") as file, h5py.File(tmp_path / "v.h5") as other:
        other.copy("v", file)
    beams |= {"file": str(path), "weights": f"/entry/data/{PRODUCTS[kind]}"}
    study = study_of({"b": workloads["b"]})
    check_study(study)
    for known in (*found, study.workload("b").outline({}).coordinates):
        antennas = known.get("antenna")  # numbers in order may stand for nothing in a file
        assert antennas is None or antennas.values.tolist() == (list(names) or [0, 1, 2])
        assert antennas is not None or not (names or known is found[0])
        assert known["polarization"].values.tolist() == (["y"] if names else [1])


def test_the_only_feed_of_an_array_is_no_number_of_another(tmp_path: Path) -> None:
    workloads = adaptive_beams(tmp_path, 1)
    put(tmp_path / "two.h5", v=np.ones((2, 3, 8), np.complex64))
    workloads["b"]["input"] |= {"file": str(tmp_path / "two.h5")}
    for chosen in (":", 1):
        workloads["b"]["input"]["select"] = {"samples": {"polarization": chosen}}
        check_study(study_of(workloads))


@pytest.mark.parametrize(
    ("names", "rows", "weights", "wrong"),
    [
        ("xy", "0:3", 1, "y, got x"), ("xy", "3:6", [0], "x, got y"), ("xy", "3:6", 1, ""),
        ("", "0:3", 1, "1, got 0"), ("", "3:6", 0, "0, got 1"), ("", "3:6", 1, ""),
    ],
)  # fmt: skip
def test_adaptive_beams_are_steered_by_weights_of_the_feed_of_their_covariances(
    tmp_path: Path, names: str, rows: str, weights: Any, wrong: str
) -> None:
    """Weights of another feed gave the product its name."""
    vis = adaptive_beams(tmp_path, 2)["vis"]
    put(tmp_path / "w.h5", w=np.ones((2, 4, 3), np.complex64))
    given: dict[str, Any] = {
        "file": str(tmp_path / "w.h5"), "weights": "w", "covariances": {"workload": "vis"},
        "axes": {"weights": ["polarization", "beam", "antenna"]},
        "select": {
            "covariances": {"input": rows, "conjugated_input": rows},
            "weights": {"polarization": weights},
        },
    }  # fmt: skip
    if names:
        given["coordinates"] = {"polarization": list(names)}
        vis["input"]["coordinates"] = {**vis["input"]["coordinates"], "polarization": list(names)}
    study = study_of({"vis": vis, "w": {"kind": "adaptive", "input": given, "loading": 1.0}})
    if wrong:
        with pytest.raises(StudyError, match=f"operand along polarization, {wrong}; select"):
            check_study(study)
        return
    check_study(study)
    one = study.workload("w").outline({"vis": study.workload("vis").product_outline(
        study.workload("vis").outline())})  # fmt: skip
    assert one.coordinates["polarization"].values.tolist() == [names[1:] or 1]


@pytest.mark.parametrize(
    ("voltages", "weights", "wrong"),
    [
        ([2, 0, 1], ":", "0 to 2, got 2 to 1"), (":", [2, 0, 1], "2 to 1, got 0 to 2"),
        ([2, 0], [0, 2], "0 to 2, got 2 to 0"), ([2, 0, 1], [2, 0, 1], ""), ([2, 0], "0:2", ""),
    ],
)  # fmt: skip
def test_adaptive_beams_are_steered_by_weights_of_the_antennas_of_their_covariances(
    tmp_path: Path, voltages: Any, weights: Any, wrong: str
) -> None:
    """Without names the order was not compared. A file of two antennas has any two."""
    vis = adaptive_beams(tmp_path, 1)["vis"]
    vis["input"]["select"] = {"voltages": {"antenna": voltages}}
    put(tmp_path / "w.h5", w=np.ones((4, 3 if weights != "0:2" else 2), np.complex64))
    given = {
        "file": str(tmp_path / "w.h5"), "weights": "w", "covariances": {"workload": "vis"},
        "axes": {"weights": ["beam", "antenna"]}, "select": {"weights": {"antenna": weights}},
    }  # fmt: skip
    study = study_of({"vis": vis, "w": {"kind": "adaptive", "input": given, "loading": 1.0}})
    if not wrong:
        return check_study(study)
    with pytest.raises(StudyError, match=f"operand along antenna, {wrong}; select"):
        check_study(study)


def adaptive_beams(folder: Path, feeds: int) -> dict[str, dict[str, Any]]:
    """Visibilities ``vis`` of 3 antennas, adaptive weights ``w`` of them, beams ``b`` by these."""
    rng = np.random.default_rng(4)
    put(folder / "v.h5", v=rng.normal(size=(feeds, 3, 8)) + 1j * rng.normal(size=(feeds, 3, 8)))
    axes = ["polarization", "antenna", "time"]
    place = {"values": [0, 1, 3], "units": "m", "axis": "antenna"}
    known = {"frequency": {"values": [1e8], "units": "Hz"}, "east": place, "north": place}
    source = {"file": str(folder / "v.h5")}
    return {
        "vis": {"kind": "correlate", "input": {
            **source, "voltages": "v", "axes": {"voltages": axes}, "coordinates": known,
        }},
        "w": {"kind": "adaptive", "beams": 4, "loading": 1.0, "input": {
            "covariances": {"workload": "vis"},
        }},
        "b": {"kind": "beamforming", "input": {
            **source, "samples": "v", "weights": {"workload": "w"}, "axes": {"samples": axes},
        }},
    }  # fmt: skip


COARSE, FINE, ANTENNAS = 3, 8, 4


def test_a_file_of_both_axes_in_any_order(tmp_path: Path, rng: np.random.Generator) -> None:
    """They were refused, and had to be written as one."""
    x = rng.normal(size=(2, COARSE, FINE, ANTENNAS, 6))
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["re"], file["im"] = x.transpose(0, 4, 2, 1, 3)
        file["w"] = rng.normal(size=(2, ANTENNAS)) + 0j
        file["w_of_all"] = np.ones((COARSE * FINE, 2, ANTENNAS)) + 0j
    axes = ["time", "fine_frequency", "channel", "antenna"]
    source: dict[str, Any] = {
        "file": str(tmp_path / "own.h5"), "samples": {"real": "re", "imag": "im"}, "weights": "w",
        "axes": {"samples": axes}, "select": {"samples": {"fine_frequency": "1:7"}},
        "coordinates": {
            "channel": {"values": [150, 152, 151], "units": "MHz"},
            "fine_frequency": {"start": -400, "step": 100, "units": "kHz"},
        },
    }  # fmt: skip

    def beams(**changes: Any) -> Any:
        return study_of({"b": {"kind": "beamforming", "input": {**source, **changes}}})

    found = run(beams(), tmp_path)["b"]
    with h5py.File(tmp_path / "own.h5") as file:
        w = file["w"][()]
    z = (x[0] + 1j * x[1])[:, 1:7].reshape(COARSE * 6, ANTENNAS, 6)
    np.testing.assert_allclose(found.data[:, 0], w @ z, atol=1e-12)
    mhz = np.array([150, 152, 151])[:, None] + np.arange(-3, 3) / 10
    np.testing.assert_allclose(found.coordinates["frequency"].values, mhz.reshape(-1))
    one_channel = {"fine_frequency": "1:7", "channel": 1}
    staged = beams(select={"samples": one_channel}).workload("b").stage()
    assert (
        "antenna 4 x time 6 (from time, frequency, antenna;" in staged.attributes["axes"]["samples"]
    )
    for number, (one, rows) in enumerate([
        (one_channel, slice(6, 12)),
        ({"fine_frequency": 3}, slice(2, None, 6)),
    ]):  # fmt: skip
        found = run(beams(select={"samples": one}), tmp_path / str(number))["b"]
        np.testing.assert_allclose(found.data[:, 0], w @ z[rows], atol=1e-12)
        np.testing.assert_allclose(found.coordinates["frequency"].values, mhz.reshape(-1)[rows])
    with pytest.raises(
        StudyError, match=r"frequency: must be given, in one of \['Hz'.*, got nothing: "
    ):
        check_study(beams(coordinates={"channel": source["coordinates"]["channel"]}))
    both = {**source["axes"], "weights": ["frequency", "beam", "antenna"]}
    offsets = {"fine_frequency": source["coordinates"]["fine_frequency"]}
    for coordinates, said in (
        (source["coordinates"], rf"the operands have frequency of lengths \[3, {COARSE * FINE}\]"),
        (
            offsets,
            "input.weights: must have frequency 3 and fine_frequency 6, as input.samples has",
        ),
    ):
        with pytest.raises(StudyError, match=said):
            check_study(beams(weights="w_of_all", axes=both, coordinates=coordinates))
