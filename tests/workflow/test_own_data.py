"""Kinds on a file that has their arrays and nothing else: from the file to the product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from matplotlib.figure import Figure
from test_chains import run
from test_shards import Pipeline

from tests.workflow.chained_cases import study_of
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study, checked_study
from workflow.study import outlined

NAMED: dict[str, dict[str, Any]] = {
    "adaptive": {"covariances": (2, 4, 4), "weights": (2, 1, 3, 4)},
    "beamforming": {"weights": (3, 4), "samples": (4, 12)},
    "channelise": {"samples": (2, 60)},
    "correlate": {"voltages": (2, 2, 3, 12)},
    "dft": {"samples": (5, 12)},
    "gemm": {"a": (2, 5, 6), "b": (2, 6, 4)},
    "mimo": {"channel": (3, 6, 2)},
    "softmax": {"x": (4, 9)},
    "solve": {"a": (5, 5), "b": (5, 2)},
    "statevector": {"state": (16,)},
}
MORE: dict[str, dict[str, Any]] = {
    "adaptive": {"loading": 3.0},
    "channelise": {"channels": 4, "taps": 3, "axis": -1},
    "correlate": {"integrate": 6},
    "dft": {"axis": 1},
    "mimo": {"snr_db": [20.0], "symbols": 5},
    "statevector": {"circuit": {"name": "qft", "qubits": 4}},
}


SHORT = ("adaptive", "correlate", "mimo")
"""Kinds that compute what they know of their coordinates, where they have any."""


@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=[pytest.mark.exhaustive] * (one not in SHORT)) for one in NAMED],
)
def test_a_file_of_arrays_is_enough(kind: str, tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "own.h5"
    with h5py.File(path, "w") as file:
        for name, shape in NAMED[kind].items():
            values = (rng.standard_normal((*shape, 2)) @ [1, 1j]).astype(np.complex64)
            if name == "covariances":
                values = values @ values.conj().swapaxes(-1, -2)
            file[name] = values.real if kind == "softmax" else values / (
                np.linalg.norm(values) if name == "state" else 1
            )  # fmt: skip
    source = {"file": str(path), **{name: name for name in NAMED[kind]}}
    study = study_of({"w": {"kind": kind, "input": source, **MORE.get(kind, {})}})
    check_study(study)
    product = Pipeline(tmp_path / "w", study.workload("w")).whole()
    study.workload("w").picture(product, Figure().subplots())
    assert product.data.size


def test_the_study_of_the_readme(tmp_path: Path, rng: np.random.Generator) -> None:
    """Its axes are those that it names: a dataset of three has polarizations first without them."""
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (block,) = (one for one in text.split("```yaml\n")[1:] if "run42.h5" in one)
    own = tmp_path / "run42.h5"
    with h5py.File(own, "w") as file:
        file["beams/w"] = np.ones((2, 5), np.complex64)
        for part in ("re", "im"):
            file[f"voltages/{part}"] = rng.standard_normal((3, 5, 4100), np.float32)
    study = tmp_path / "night.yaml"
    study.write_text("device: cpu\n" + block.split("```")[0].replace("/data/run42.h5", str(own)))
    loaded = checked_study(study)
    product = loaded.workload("my-array").product_outline(loaded.workload("my-array").outline({}))
    assert product.axes == ("frequency", "polarization", "beam", "time")
    assert product.data.shape == (3, 1, 2, 4096)


@pytest.mark.parametrize("feeds", [1, 2])
def test_names_of_antennas_go_along_to_the_beams(tmp_path: Path, feeds: int) -> None:
    """Weights of the beams are of the covariances of the same voltages, or of others."""
    path = put(tmp_path / "v.h5", v=np.ones((2, feeds, 3, 12), np.complex64))
    names = ["core", "east", "north"]
    places = {"values": [0.0, 30.0, 0.0], "units": "m", "axis": "antenna"}
    of_v = {"frequency": {"values": [1.4e8, 1.5e8], "units": "Hz"}, "antenna": names}
    inputs = {"input": "0:3", "conjugated_input": "0:3"}
    workloads = {
        "vis": {"kind": "correlate", "integrate": 4, "input": {
            "file": str(path), "voltages": "v", "coordinates": {
                **of_v, "east": places, "north": {**places, "values": [0.0, 0.0, 30.0]},
            },
        }},
        "nulls": {"kind": "adaptive", "beams": 4, "loading": 3.0, "input": {
            "covariances": {"workload": "vis"},
            "select": {"covariances": inputs} if feeds > 1 else {},
        }},
        "beams": {"kind": "beamforming", "input": {
            "file": str(path), "weights": {"workload": "nulls"}, "samples": "v",
            "coordinates": of_v,
        }},
    }  # fmt: skip
    check_study(study_of(workloads))
    one, outline = outlined(study_of(workloads).chain("nulls"))
    assert one.product_outline(outline).coordinates["antenna"].values.tolist() == names
    of_v["antenna"] = names[::-1]
    workloads["vis"]["input"]["coordinates"]["antenna"] = names
    with pytest.raises(StudyError, match="another operand along antenna, north to core, got core"):
        check_study(study_of(workloads))


@pytest.mark.parametrize(
    ("taken", "mistake"),
    [(1, ""), ([1], ""), (0, "along polarization, x, got y"), (":", "polarization, x to y, got y")],
)
def test_weights_of_another_feed_are_refused(tmp_path: Path, taken: Any, mistake: str) -> None:
    """Weights of visibilities of feed y made beams of x, and of both feeds."""
    put(path := tmp_path / "v.h5", v=np.ones((2, 4, 12), np.complex64))
    axes = ["polarization", "antenna", "time"]
    known = {"polarization": ["x", "y"], "frequency": {"values": [1e8], "units": "Hz"}, **PLACED}
    source = {"file": str(path), "coordinates": known}
    inputs = {"covariances": {"input": ["y"], "conjugated_input": ["y"]}}
    study = study_of({
        "vis": {"kind": "correlate", "input": {**source, "voltages": "v", "axes": axes}},
        "nulls": {"kind": "adaptive", "beams": 4, "loading": 3.0, "input": {
            "covariances": {"workload": "vis"}, "select": inputs,
        }},
        "beams": {"kind": "beamforming", "input": {
            **source, "weights": {"workload": "nulls"}, "samples": "v", "axes": {"samples": axes},
            "select": {"samples": {"polarization": taken}},
        }},
    })  # fmt: skip
    if mistake:
        with pytest.raises(StudyError, match=mistake):
            check_study(study)
        return
    found = run(study, tmp_path)
    for name in ("nulls", "beams"):
        assert found[name].coordinates["polarization"].values.tolist() == ["y"]


PLACED: dict[str, Any] = {
    name: {"values": values, "units": "m", "axis": "antenna"}
    for name, values in (("east", [0.0, 30.0, 0.0, 9.0]), ("north", [0.0, 0.0, 30.0, 9.0]))
}
TURNED: dict[str, Any] = {
    name: {**one, "values": [one["values"][n] for n in (1, 0, 2, 3)]}
    for name, one in PLACED.items()
}
OTHERS = [  # of antennas that weights are made of, and of samples; where these stand; the mistake
    ("0:2", "0:2", PLACED, ""), ("0:2", "2:4", {}, "along antenna, 2 to 3, got 0 to 1; select"),
    ([1, 0], "0:2", {}, "along antenna, 0 to 1, got 1 to 0; select"),
    ([1, 0, 2, 3], ":", PLACED, "weights: antenna 1 must stand where that of samples does, 30 m "
     "east, 0 m north of the first, got -30 m east, 0 m north; select the same antennas"),
    ([1, 0, 2, 3], ":", TURNED, ""),
    ([1, 0, 2, 3], ":", {}, "along antenna, 0 to 3, got 1 to 3; select"),
]  # fmt: skip


@pytest.mark.parametrize(("made_of", "taken", "places", "mistake"), OTHERS)
def test_weights_of_other_antennas_are_refused(
    tmp_path: Path, made_of: Any, taken: Any, places: dict[str, Any], mistake: str
) -> None:
    """Without names too: by the numbers that are selected, or by where antennas stand."""
    put(path := tmp_path / "v.h5", v=np.ones((2, 4, 12), np.complex64))

    def of(name: str, antennas: Any, known: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "file": str(path), name: "v", "axes": {name: ["frequency", "antenna", "time"]},
            "select": {name: {"antenna": antennas}}, **more,
            "coordinates": {"frequency": {"values": [1e8, 2e8], "units": "Hz"}, **known},
        }  # fmt: skip

    nulls = {"covariances": {"workload": "vis"}}
    study = study_of({
        "vis": {"kind": "correlate", "input": of("voltages", made_of, PLACED)},
        "nulls": {"kind": "adaptive", "beams": 4, "loading": 3.0, "input": nulls},
        "beams": {"kind": "beamforming", "input": of(
            "samples", taken, places, weights={"workload": "nulls"}
        )},
    })  # fmt: skip
    if not mistake:
        return check_study(study)
    with pytest.raises(StudyError, match=mistake):
        check_study(study)
