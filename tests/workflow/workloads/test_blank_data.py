"""Data that are all zeros: of a blank channel, which may be a shard or a piece of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from test_shards import Pipeline

from tests.workflow.chained_cases import study_of
from tests.workflow.workloads.on_cpu import computed
from workflow.files.input_error import InputError
from workflow.storage.products import read_product

SHAPES: dict[str, tuple[int, ...]] = {
    "voltages": (2, 2, 3, 64), "covariances": (2, 3, 3), "samples": (3, 256), "sides": (5, 2)
}  # fmt: skip
PLACES: dict[str, Any] = {
    name: {"dataset": name, "units": "m", "axis": "antenna"} for name in ("east", "north")
}
BLANK: dict[str, dict[str, Any]] = {
    "beams": {"kind": "beamforming", "input": {"weights": "weights", "samples": "voltages"}},
    "power": {
        "kind": "beamforming", "detect": "power", "integrate": 4,
        "input": {"weights": "weights", "samples": "voltages"},
    },
    "stokes": {
        "kind": "beamforming", "detect": "stokes", "integrate": 4,
        "input": {"weights": "weights", "samples": "voltages"},
    },
    "correlate": {"kind": "correlate", "input": {"voltages": "voltages"}},
    "channelise": {
        "kind": "channelise", "channels": 8, "taps": 4, "axis": -1, "input": {"samples": "voltages"}
    },
    "dft": {"kind": "dft", "axis": -1, "input": {"samples": "voltages"}},
    "spectrogram": {
        "kind": "dft", "axis": -1, "power": True, "length": 16, "average": 2,
        "input": {"samples": "samples"},
    },
    "detrended": {
        "kind": "dft", "axis": -1, "power": True, "length": 16, "average": "all",
        "detrend": "linear", "input": {"samples": "samples"},
    },
    "image": {
        "kind": "image", "directions": {"n": 5, "field_of_view_deg": 10.0},
        "input": {
            "covariances": "covariances", "axes": ["frequency", "antenna", "column"],
            "coordinates": {**PLACES, "frequency": {"start": 1e8, "step_hz": 1e6}},
        },
    },
    "solve": {"kind": "solve", "input": {"a": "matrix", "b": "sides"}},
    "gemm": {"kind": "gemm", "input": {"a": "matrix", "b": "sides"}},
}  # fmt: skip


@pytest.mark.parametrize("name", BLANK)
def test_zeros_are_verified_as_zeros_and_nothing_else_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "blank.h5"
    with h5py.File(path, "w") as file:
        for dataset, shape in SHAPES.items():
            file[dataset] = np.zeros(shape, np.complex64)
        file["weights"], file["matrix"] = np.ones((2, 3), np.complex64), 2j * np.eye(5)
        file["east"], file["north"] = np.arange(3.0), np.zeros(3)
    case = {**BLANK[name], "input": {"file": str(path), **BLANK[name]["input"]}}
    one = study_of({"w": case}).workload("w")
    for precision in ("fp64", "fp32", "3xfp16", "bf16"):
        staged, result = computed(one, precision)
        reference, row = one.reference(staged), PRECISIONS[precision]
        found = one.assess(staged, reference, result, row, "cpu")
        assert found.verified, (precision, found.reason)
        assert found.rel_frobenius == 0
        wrong = np.array(result)
        wrong.reshape(-1)[1] = np.finfo(np.float32).tiny
        assert not one.assess(staged, reference, wrong, row, "cpu").verified


SOLVED: dict[str, dict[str, Any]] = {
    "adaptive": {
        "kind": "adaptive", "input": {
            "covariances": "covariances", "weights": "steering",
            "axes": {
                "covariances": ["frequency", "antenna", "column"], "weights": ["beam", "antenna"],
            },
        },
    },
    "mimo": {
        "kind": "mimo", "qam": 4, "snr_db": [20.0], "symbols": 8, "equaliser": "zf",
        "input": {"channel": "channel", "axes": ["frequency", "receiver", "transmitter"]},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVED)
def test_a_blank_channel_that_is_a_shard_takes_no_product_from_the_others(
    name: str, tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(4), tmp_path / "some.h5"
    v = rng.standard_normal((3, 3, 8)) + 1j * rng.standard_normal((3, 3, 8))
    v[1] = 0
    with h5py.File(path, "w") as file:
        file["covariances"], file["channel"] = v @ v.conj().swapaxes(1, 2), v[..., :2]
        file["steering"] = np.ones((2, 3), np.complex64)
        file["zeros"] = np.zeros((3, 3, 3), np.complex64)
    given = SOLVED[name]["input"]
    case = {**SOLVED[name], "input": {"file": str(path), **given}}
    study = study_of({"w": case})
    pipeline = Pipeline(tmp_path / "shards", study.workload("w"))
    found, records = pipeline.sharded(3)
    data = np.moveaxis(found.data, found.axes.index("frequency"), 0)
    assert np.isnan(data[1]).all()
    assert np.isfinite(data[[0, 2]]).all()
    pipeline = Pipeline(tmp_path / "whole", study.workload("w"))
    (record,) = own = pipeline.measure("w")
    whole = read_product(pipeline.deliver("w", own, own))
    assert records[0].measures.keys() >= {*record.measures} & {"output_sinr_db", "bits_changed"}
    if name == "adaptive":  # as strong as if the blank channel were not there
        assert records[0].measures["output_sinr_db"] == record.measures["output_sinr_db"]
    np.testing.assert_allclose(found.data, whole.data, rtol=1e-12)

    operand = next(iter(given))
    zeros = {**case["input"], operand: "zeros"}
    with pytest.raises(InputError, match=f"^input.{operand}: all of its values are zero"):
        study_of({"w": {**case, "input": zeros}}).workload("w").stage()
