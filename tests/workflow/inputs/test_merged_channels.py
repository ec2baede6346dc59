"""Channels within coarse channels, which visibilities and beams have as one axis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of
from tests.workflow.peak_memory import with_peak
from workflow.config.mistakes import StudyError
from workflow.data import Array
from workflow.inputs import product_operand
from workflow.inputs.merged_channels import Merged, MergedArray
from workflow.preflight.check import check_study
from workflow.storage.products import read_product

COARSE, FINE, ANTENNAS = 3, 8, 4


@pytest.fixture
def bank(tmp_path: Path) -> dict[str, Any]:
    """A filter bank of coarse channels (channel, feed, antenna, time) in MHz."""
    rng = np.random.default_rng(5)
    place = {"values": [0, 1, 3, 7], "units": "m", "axis": "antenna"}
    with h5py.File(tmp_path / "v.h5", "w") as file:
        shape = (COARSE, 2, ANTENNAS, 18 * FINE)
        file["v"] = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    source = {
        "file": str(tmp_path / "v.h5"), "samples": "v",
        "axes": ["frequency", "polarization", "antenna", "time"], "sample_rate_hz": 1e6,
        "coordinates": {
            "frequency": {"values": [150, 151, 152], "units": "MHz"}, "east": place,
            "north": place, "gain": {"values": [5, 6, 7], "axis": "frequency"},
        },
    }  # fmt: skip
    return {
        "kind": "channelise", "channels": FINE, "taps": 3, "axis": "time", "shift": True,
        "input": source,
    }  # fmt: skip


@pytest.mark.parametrize(("stretch", "count"), [(1 << 26, 1), (1 << 9, 2)])
def test_visibilities_of_all_channels(
    tmp_path: Path, bank: dict[str, Any], monkeypatch: pytest.MonkeyPatch, stretch: int, count: int
) -> None:
    """Those within each coarse channel had to be taken one by one, in a workload each."""
    monkeypatch.setattr(product_operand, "STRETCH_BYTES", stretch)
    select = {"voltages": {"polarization": 1, "time": "0:16"}}
    study = study_of({
        "bank": {**bank, "shards": count},
        "vis": {"kind": "correlate", "integrate": 8, "shards": count, "input": {
            "voltages": {"workload": "bank"}, "select": select,
        }},
        "image": {"kind": "image", "directions": {"n": 3, "field_of_view_deg": 9}, "shards": count,
                  "input": {"covariances": {"workload": "vis"}}},
    })  # fmt: skip
    found = run(study, tmp_path, count)
    x = np.moveaxis(found["bank"].data[:, 1, :, :16], -1, 1)  # (coarse, fine, antenna, time)
    x = x.reshape(COARSE * FINE, ANTENNAS, 2, 8).swapaxes(1, 2)
    expected = x @ x.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(found["vis"].data, expected, atol=1e-12 * abs(expected).max())
    there = found["vis"].coordinates
    hertz = 1e6 * np.array([150, 151, 152])[:, None] + 1e6 * np.arange(-4, 4) / FINE
    np.testing.assert_allclose(there["frequency"].values, hertz.reshape(-1) / 1e6)
    np.testing.assert_array_equal(there["gain"].values, np.repeat([5, 6, 7], FINE))
    np.testing.assert_allclose(
        found["image"].coordinates["summed_frequency"].values, hertz.reshape(-1) / 1e6
    )


def test_beams_of_all_channels(tmp_path: Path, bank: dict[str, Any]) -> None:
    beams = {"kind": "beamforming", "beams": 4, "input": {"samples": {"workload": "bank"}}}
    study = study_of({"bank": bank, "beams": beams})
    found = run(study, tmp_path)["beams"]
    assert found.data.shape[:3] == (COARSE * FINE, 2, 4)
    np.testing.assert_allclose(np.diff(found.coordinates["frequency"].values), 1 / FINE)


@pytest.mark.parametrize(
    ("select", "coarse", "fine"),
    [
        ({"frequency": "0:3:2"}, [0, 2], [*range(FINE)]), ({"frequency": -1}, [2], [*range(FINE)]),
        ({"fine_frequency": "2:6"}, [0, 1, 2], [2, 3, 4, 5]),
        ({"fine_frequency": [5, 1], "channel": [2, 0]}, [2, 0], [5, 1]),
    ],
)  # fmt: skip
def test_a_part_of_either(
    tmp_path: Path, bank: dict[str, Any], select: Any, coarse: list[int], fine: list[int]
) -> None:
    """The fine channels in the middle of each oversampled channel cover the band once."""
    given = {"voltages": {"workload": "bank"}, "select": {"voltages": {**select, "antenna": "1:"}}}
    study = study_of({"bank": bank, "vis": {"kind": "correlate", "input": given}})
    found = run(study, tmp_path)
    x = np.moveaxis(found["bank"].data[:, :, 1:], -1, 1)[coarse][:, fine]
    x = x.reshape(len(coarse) * len(fine), 2 * (ANTENNAS - 1), -1)
    expected = x @ x.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(found["vis"].data[:, 0], expected, atol=1e-12 * abs(expected).max())
    mhz = np.array([150, 151, 152])[coarse, None] + np.arange(-4, 4)[fine] / FINE
    np.testing.assert_allclose(found["vis"].coordinates["frequency"].values, mhz.reshape(-1))
    file = {"file": str(tmp_path / "bank/products/w.h5"), "voltages": "/entry/data/spectra"}
    again = run(
        study_of({"vis": {"kind": "correlate", "input": {**given, **file}}}), tmp_path / "f"
    )
    np.testing.assert_array_equal(again["vis"].data, found["vis"].data)
    assert set(again["vis"].coordinates) == set(found["vis"].coordinates)
    for name, one in found["vis"].coordinates.items():
        other = again["vis"].coordinates[name]
        np.testing.assert_array_equal(other.values, one.values)
        assert (other.units, other.long_name) == (one.units, one.long_name)


@pytest.mark.parametrize("select", [{}, {"frequency": "1:3", "fine_frequency": "2:6"}])
@pytest.mark.parametrize("replaces", [True, False])
def test_coordinates_are_those_of_the_products_own_axes(
    tmp_path: Path, bank: dict[str, Any], select: dict[str, str], replaces: bool
) -> None:
    """Equal steps of coarse channels were taken for those of the channels within, from the first
    that is selected on; without frequencies of the product itself both were refused.
    """
    given: dict[str, Any] = {"frequency": {"values": [1420, 1421, 1419], "units": "MHz"}}
    if replaces:
        given["frequency"] = {"start": 1420, "step": 2, "units": "MHz", "replace": True}
        given["fine_frequency"] = {"start": -400, "step": 100, "units": "kHz", "replace": True}
    else:
        bank["input"]["coordinates"].pop("frequency")
        given["gain"] = {"values": [*range(FINE)], "axis": "fine_frequency"}
    vis = {"kind": "correlate", "input": {
        "voltages": {"workload": "bank"}, "coordinates": given, "select": {"voltages": select},
    }}  # fmt: skip
    found = run(study_of({"bank": bank, "vis": vis}), tmp_path)["vis"].coordinates
    coarse = np.array([1420, 1422, 1424] if replaces else [1420, 1421, 1419])
    fine = (np.arange(FINE) - 4) * (0.1 if replaces else 0.125)
    mhz = coarse[:, None] + fine
    kept = (slice(1, 3), slice(2, 6)) if select else slice(None)
    np.testing.assert_allclose(found["frequency"].values, mhz[kept].reshape(-1))
    if not replaces:
        gain = np.broadcast_to(np.arange(FINE), mhz.shape)[kept].reshape(-1)
        np.testing.assert_array_equal(found["gain"].values, gain)


def test_channels_of_real_samples_within_coarse_ones_are_none_of_both(
    tmp_path: Path, bank: dict[str, Any]
) -> None:
    """They count from an edge of the coarse channel, which may be either."""
    with h5py.File(bank["input"]["file"], "a") as file:
        file["r"] = file["v"][()].real
    bank |= {"real": True, "shift": False, "input": {**bank["input"], "samples": "r"}}
    run(study_of({"bank": bank}), tmp_path)
    source = {"file": str(tmp_path / "bank/products/w.h5"), "voltages": "/entry/data/spectra"}
    with pytest.raises(StudyError, match="which is no frequency of one channel"):
        check_study(study_of({"vis": {"kind": "correlate", "input": source}}))


@pytest.mark.parametrize(("fine", "overlap"), [(":", True), ("0:7", True), ("1:7", False)])
def test_oversampled_channels_that_overlap(
    tmp_path: Path, bank: dict[str, Any], fine: str, overlap: bool
) -> None:
    """A UVH5 file of them would have frequencies twice; an image adds their power twice."""
    bank["input"]["sample_rate_hz"] = 8e6 / 6
    bank["input"]["select"] = {"samples": {"polarization": 0}}
    select = {"voltages": {"frequency": ":", "fine_frequency": fine}}
    vis = {"kind": "correlate", "input": {"voltages": {"workload": "bank"}, "select": select}}
    image = {"kind": "image", "directions": {"n": 3, "field_of_view_deg": 9}}
    image["input"] = {"covariances": {"workload": "vis"}}
    workloads = {"bank": bank, "vis": vis, "image": image}
    run(study_of(workloads), tmp_path)
    staged = (
        study_of(workloads)
        .workload("image")
        .outline({"vis": read_product(tmp_path / "vis" / "products" / "w.h5")})
    )
    assert ("added twice" in study_of(workloads).workload("image").remark(staged)) == overlap
    site = {"latitude_deg": 1, "longitude_deg": 2, "julian_date": 2459000.5}
    written = study_of({"bank": bank, "vis": {**vis, "uvh5": site}})
    if overlap:
        with pytest.raises(StudyError, match="uvh5: the channels within coarse ones overlap"):
            check_study(written)
    else:
        check_study(written)


@pytest.mark.parametrize(("fine", "wrong"), [("2:6", ""), ("::2", "must"), ([3], "must")])
def test_the_width_of_channels_that_are_no_neighbours(
    bank: dict[str, Any], fine: Any, wrong: str
) -> None:
    """UVH5 has it; the least distance of these is more."""
    select = {"voltages": {"fine_frequency": fine}}
    site: dict[str, Any] = {"latitude_deg": 1, "longitude_deg": 2, "julian_date": 2459000.5}
    given = {"voltages": {"workload": "bank"}, "select": select}
    vis = {"kind": "correlate", "input": given, "uvh5": site}
    if wrong:
        said = "uvh5.channel_width_hz: must be given where input.select takes no neighbouring"
        with pytest.raises(StudyError, match=said):
            check_study(study_of({"bank": bank, "vis": vis}))
        site["channel_width_hz"] = 125e3
    check_study(study_of({"bank": bank, "vis": vis}))


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ({"frequency": "x"}, "has no names along frequency, got 'x'"),
        ({"fine": 1}, "'time', 'fine_frequency'], got 'fine'"),
        ({"frequency": "0:9"}, "axis 0 has length 3: a bound must be within -3 to 3"),
    ],
)
def test_mistakes(bank: dict[str, Any], select: Any, said: str) -> None:
    given = {"voltages": {"workload": "bank"}, "select": {"voltages": select}}
    with pytest.raises(StudyError) as error:
        check_study(study_of({"bank": bank, "vis": {"kind": "correlate", "input": given}}))
    assert said in str(error.value)


def test_many_channels_take_no_memory_to_check(bank: dict[str, Any]) -> None:
    bank |= {"channels": 1 << 20, "taps": 1, "input": {**bank["input"], "select": {}}}
    with h5py.File(bank["input"]["file"], "w") as file:
        file.create_dataset("v", (64, 1, 2, 1 << 20), np.complex64, chunks=(1, 1, 1, 1 << 20))
    hertz = {"frequency": {"start": 1.5e8, "step_hz": 1e6}}
    bank["input"] = {**bank["input"], "coordinates": hertz}
    one = study_of({"bank": bank}).workload("bank")
    vis = {"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}
    workload = study_of({"bank": bank, "vis": vis}).workload("vis")
    upstream = {"bank": one.product_outline(one.outline())}
    outline, peak = with_peak(lambda: workload.outline(upstream))
    assert outline.operands["voltages"].shape[0] == 64 << 20
    assert peak < 64 << 20


class InMemory:
    """An array whose boxes are read as those of a file."""

    def __init__(self, data: Array) -> None:
        self.data = data

    def __getitem__(self, spans: Any) -> Array:
        return np.asarray(self.data[spans])


def test_any_range_of_both_axes(rng: np.random.Generator) -> None:
    data = rng.normal(size=(2, 6, 3, FINE))
    channels, within = [0, 1, 2, 5, 3], [2, 1, 4]
    whole = np.moveaxis(data, 3, 2)[:, channels][:, :, within].reshape(2, 15, 3)
    merged = MergedArray(InMemory(data), Merged(1, 3, channels, within))  # type: ignore[arg-type]
    for start in range(15):
        for stop in range(start + 1, 16):
            for step in (1, 3):
                spans = (slice(0, 2, 1), slice(start, stop, step), slice(0, 3, 2))
                np.testing.assert_array_equal(merged[spans], whole[spans])
