"""Numbers of the entries that a study selects, in the products."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from input_files import put
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.peak_memory import with_peak
from workflow.config.mistakes import StudyError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study


def test_selected_entries_keep_their_numbers(tmp_path: Path) -> None:
    """Antennas 3 and 1 of a selection are 3 and 1 in the product, with their own names."""
    path = put(tmp_path / "v.h5", v=np.ones((3, 4, 6, 8), np.complex64))

    def product(kind: str, select: dict[str, Any], **more: Any) -> Any:
        operand = "voltages" if kind == "correlate" else "samples"
        source = {
            "file": str(path), operand: "v", "select": {operand: select},
            "axes": ["frequency", "polarization", "antenna", "time"], **more,
        }  # fmt: skip
        case = {"kind": kind, "input": source} | ({} if kind == "correlate" else {"axis": "time"})
        study = load_study({"device": "cpu", "workloads": {"w": case}})
        check_study(study)
        one = study.workload("w")
        staged = one.stage()
        outlined = one.product_outline(one.outline()).coordinates
        found = one.product(staged, np.zeros(one.result_shape(staged))).coordinates
        assert set(outlined) == set(found)
        return found

    found = product("dft", {"antenna": [3, 1], "time": "2:8:2", "frequency": "1:3"})
    np.testing.assert_array_equal(found["antenna"].values, [3, 1])
    assert found["antenna"].long_name == "number of the antenna in the input"
    assert not {"polarization", "frequency"} & set(found)  # whole, or without a unit
    np.testing.assert_array_equal(np.diff(found["time_frequency"].values), [1 / 3] * 2)
    found = product("correlate", {"antenna": "4:6", "polarization": 2})
    np.testing.assert_array_equal(found["input_antenna"].values, [4, 5])
    np.testing.assert_array_equal(found["conjugated_input_antenna"].values, [4, 5])
    np.testing.assert_array_equal(found["input_polarization"].values, [2, 2])  # as [2] has it
    found = product("dft", {"antenna": [3, 1]}, coordinates={"antenna": list("abcdef")})
    np.testing.assert_array_equal(found["antenna"].values, ["d", "b"])


@pytest.mark.parametrize(
    ("entry", "axes", "values"),
    [
        ([1, ":", ":"], None, [1e8, 2e8, 3e8]),
        ([1, ":", ":"], ["frequency", "antenna", "column"], [1e8, 2e8, 3e8]),
        ([":", ":", 1], None, [2e8]),
        ([":", ":", 1], ["antenna", "column", "frequency"], [1e8, 2e8, 3e8]),
    ],
)
def test_a_number_takes_one_of_the_values_of_a_dataset(
    tmp_path: Path, entry: list[Any], axes: list[str] | None, values: list[float]
) -> None:
    """As long as the file's axis, which the study names, or which is where an operand has it.

    Behind others it is nowhere that an operand has it, and one value is that of the matrix.
    """
    path = tmp_path / "r.h5"
    with h5py.File(path, "w") as file:
        matrices = np.tile(np.eye(4, dtype=np.complex64), (3, 1, 1))
        file["r"] = matrices if entry[0] == 1 else matrices.transpose(1, 2, 0)
        file["hz"] = values
    place = {"values": [0, 1, 4, 9], "axis": "antenna", "units": "m"}
    source = {
        "file": str(path), "covariances": "r", "select": {"covariances": entry},
        "coordinates": {"frequency": {"dataset": "hz", "units": "Hz"}, "east": place,
                        "north": place},
        **({"axes": axes} if axes else {}),
    }  # fmt: skip
    study = study_of({"w": {"kind": "adaptive", "beams": 2, "input": source}})
    check_study(study)
    np.testing.assert_array_equal(study.workload("w").stage().coordinates["frequency"].values, 2e8)


@pytest.mark.parametrize("detected", [{}, {"detect": "power", "integrate": 2}])
@pytest.mark.parametrize("names", [{}, {"coordinates": {"antenna": list("abcdef")}}])
def test_beams_of_selected_antennas(
    tmp_path: Path, detected: dict[str, Any], names: dict[str, Any]
) -> None:
    """A product of beams has no antennas, and leaves out their numbers and names."""
    path = put(tmp_path / "v.h5", v=np.ones((6, 8), np.complex64), w=np.ones((4, 6), np.complex64))
    source = {
        "file": str(path), "samples": "v", "weights": "w", **names,
        "axes": {"samples": ["antenna", "time"], "weights": ["beam", "antenna"]},
        "select": {"samples": {"antenna": [3, 1]}, "weights": {"antenna": [3, 1], "beam": "2:"}},
    }  # fmt: skip
    case = {"kind": "beamforming", "input": source, **detected}
    study = load_study({"device": "cpu", "workloads": {"w": case}})
    check_study(study)
    one = study.workload("w")
    found = one.product_outline(one.outline()).coordinates
    np.testing.assert_array_equal(found["beam"].values, [2, 3])
    assert "antenna" not in found


@pytest.mark.parametrize("detected", [{}, {"detect": "power", "integrate": 2}])
@pytest.mark.parametrize("steered", [False, True])
def test_names_of_antennas_stay_beside_their_places(
    tmp_path: Path, detected: dict[str, Any], steered: bool
) -> None:
    """They say which antenna each place is of; a product of beams lost them."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        file["v"], file["w"] = np.ones((2, 6, 8), np.complex64), np.ones((4, 6), np.complex64)
    along = {"units": "m", "axis": "antenna"}
    source = {
        "file": str(path), "samples": "v", **({} if steered else {"weights": "w"}),
        "axes": {"samples": ["frequency", "antenna", "time"]},
        "select": {"samples": {"antenna": [3, 1]}},
        "coordinates": {
            "antenna": list("abcdef"), "east": {"values": [0, 1, 2, 3, 4, 5], **along},
            "north": {"values": [0, 2, 4, 6, 8, 10], **along},
            "frequency": {"start": 1e8, "step_hz": 1e6}, "cable": {"values": list("uvwxyz"),
            "axis": "antenna"},
        },
    }  # fmt: skip
    if not steered:
        source["axes"]["weights"] = ["beam", "antenna"]
        source["select"]["weights"] = {"antenna": [3, 1]}
    case = {"kind": "beamforming", "input": source, **detected, **({"beams": 4} if steered else {})}
    study = study_of({"w": case})
    found = run(study, tmp_path)["w"].coordinates
    place = "antenna_position" if steered else "east"
    assert found[place].of(place)[0] == "antenna"
    for name, values in (("antenna", ["d", "b"]), ("cable", ["x", "v"])):
        assert found[name].of(name) == ("antenna",)
        assert list(found[name].values) == values
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    (product,) = (tmp_path / "w").rglob("products/w.h5")
    with xarray.open_dataset(product, engine="h5netcdf") as opened:
        assert list(opened["antenna"].values) == ["d", "b"]
        assert opened[place].dims[0] == "antenna"


def test_a_selected_window(tmp_path: Path) -> None:
    """The numbers of a window's samples stay out of the product, which has no such axis."""
    path = put(tmp_path / "v.h5", v=np.ones((6, 8), np.complex64), w=np.ones(16))
    source = {
        "file": str(path), "samples": "v", "window": "w", "axes": {"samples": ["antenna", "time"]},
        "select": {"samples": {"antenna": [3, 1]}, "window": ["4:12"]},
    }  # fmt: skip
    study = load_study({"workloads": {"w": {"kind": "dft", "axis": "time", "input": source}}})
    check_study(study)
    one = study.workload("w")
    found = one.product_outline(one.outline()).coordinates
    assert set(found) == {"antenna", "frequency"}


def test_a_long_time_takes_no_memory_to_describe(tmp_path: Path) -> None:
    """Its numbers, which the product has not, took more than the data: 24 GB at 2^30 samples."""
    path, samples = tmp_path / "v.h5", 1 << 24
    with h5py.File(path, "w") as file:
        file.create_dataset("v", (samples,), np.complex64, chunks=(1 << 20,))
    source = {"file": str(path), "samples": "v", "axes": ["time"], "select": {"samples": ["1:"]}}
    case = {"kind": "channelise", "channels": 64, "taps": 4, "input": source}
    one = load_study({"device": "cpu", "workloads": {"w": case}}).workload("w")
    _, peak = with_peak(one.outline)
    assert peak < samples


@pytest.mark.parametrize("kind", ["dft", "channelise"])
def test_the_number_of_an_entry_of_any_axis_stays(tmp_path: Path, kind: str) -> None:
    """A product of samples of receiver 2 says that they are of receiver 2."""
    path = put(tmp_path / "v.h5", v=np.ones((3, 4, 64), np.complex64))
    source = {
        "file": str(path), "samples": "v", "axes": ["receiver", "row", "time"],
        "select": {"samples": {"receiver": 2}},
    }  # fmt: skip
    bank = {"channels": 4} if kind == "channelise" else {}
    first = {"kind": kind, "axis": "time", "input": source, **bank}
    again = {
        "kind": "dft", "axis": "row", "input": {
            "samples": {"workload": "first"}, "select": {"samples": {"frequency": 1}},
        },
    }  # fmt: skip
    found = run(study_of({"first": first, "again": again}), tmp_path / "run")
    for product in found.values():
        one = product.coordinates["selected_receiver"]
        assert (one.values.tolist(), one.long_name) == (
            [2], "number of the receiver in the input that is selected",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "wrong"),
    [([0, 1, 2, 5], "[0, 1, 2, 5]"), ([0, 3, 5], "[0, 3, 5]"), ([3, 3, 3], "[3, 3, 3]"),
     ([*range(6), 7], "5] and so on"), ([6, 4, 2], None), ([5], None), ([0, 7], None),
     ("::3", None)],
)  # fmt: skip
def test_what_is_transformed_is_selected_at_equal_steps(
    tmp_path: Path, chosen: Any, wrong: str | None
) -> None:
    """Where nothing stands along it, else its values must be; other axes may have any."""
    path = put(tmp_path / "v.h5", v=np.ones((8, 8), np.complex64))
    select = {"samples": {"time": chosen, "beam": [0, 1, 5]}}
    source = {"file": str(path), "samples": "v", "axes": ["beam", "time"], "select": select}
    study = load_study({
        "device": "cpu", "workloads": {"w": {"kind": "dft", "axis": "time", "input": source}},
    })  # fmt: skip
    if wrong is None:
        return check_study(study)
    with pytest.raises(StudyError, match="at equal steps along time, which is transformed") as said:
        check_study(study)
    assert str(said.value).endswith(wrong)


@pytest.mark.parametrize(
    ("chosen", "apart"), [("::2", 2), ([0, 3, 0], 3), ("1:3", 1), ([3, 0, 1], 1)]
)
def test_the_distance_of_selected_channels_is_no_width(
    tmp_path: Path, chosen: Any, apart: int
) -> None:
    """UVH5 has the width of channels, which is that of neighbours alone."""
    path = put(tmp_path / "v.h5", v=np.ones((4, 2, 8), np.complex64))
    place = {"values": [0, 1], "units": "m", "axis": "antenna"}
    source = {
        "file": str(path), "voltages": "v", "axes": ["frequency", "antenna", "time"],
        "select": {"voltages": {"frequency": chosen}}, "sample_rate_hz": 1e3,
        "coordinates": {"frequency": {"step_hz": 1e3}, "east": place, "north": place},
    }  # fmt: skip
    site = {"latitude_deg": 1, "longitude_deg": 2, "julian_date": 2459000.5}
    study = study_of({"w": {"kind": "correlate", "uvh5": site, "input": source}})
    if apart == 1:
        return check_study(study)
    with pytest.raises(StudyError, match=rf"neighbouring channels, got {apart} entries from one"):
        check_study(study)
