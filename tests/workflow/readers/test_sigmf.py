"""SigMF recordings: numbers of every type, what the JSON says, captures, missing samples."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_chains import run

from tests.workflow.chained_cases import study_of as study_of_all
from tests.workflow.one_case import error_of, staged, study_of
from workflow.data import TUNED
from workflow.readers.sigmf_captures import fault_in

CAPTURE = {
    "core:sample_start": 0, "core:frequency": 915e6, "core:datetime": "2026-11-28T10:00:00.5Z",
}  # fmt: skip


def write(folder: Path, data: Any, kind: str, *captures: Any, **more: Any) -> Path:
    """A recording ``r`` in a folder; returns the path of its JSON."""
    keys = {f"core:{key}": value for key, value in more.items() if value is not None}
    content = {
        "global": {"core:datatype": kind, "core:sample_rate": 2e6, "core:version": "1.2.0", **keys},
        "captures": list(captures or (CAPTURE,)), "annotations": [],
    }  # fmt: skip
    path = folder / "r.sigmf-meta"
    path.write_text(json.dumps(content))
    (folder / "r.sigmf-data").write_bytes(data.tobytes())
    return path


def capture(start: float, **more: Any) -> dict[str, Any]:
    return {"core:sample_start": start, **{f"core:{key}": value for key, value in more.items()}}


def case(path: Path, **more: Any) -> dict[str, Any]:
    source = {"file": str(path), "format": "sigmf", "samples": "samples", **more}
    return {"kind": "dft", "axis": "time", "input": source}


TYPES = {
    "f32_le": ("<f4", 0), "f64_be": (">f8", 0), "i32_le": ("<i4", 0), "i16_be": (">i2", 0),
    "i8": ("i1", 0), "u32_le": ("<u4", 1 << 31), "u16_le": ("<u2", 1 << 15), "u8": ("u1", 128),
}  # fmt: skip


@pytest.mark.each_value
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("channels", [1, 3])
def test_numbers_of_every_type(tmp_path: Path, name: str, channels: int) -> None:
    kind, level = TYPES[name]
    rng = np.random.default_rng(7)
    data = rng.integers(0, 100, (64, channels, 2)).astype(kind)
    path = write(tmp_path, data, f"c{name}", num_channels=channels)
    values = data.astype(float) - level
    expected = values[..., 0] + 1j * values[..., 1]
    found = staged(case(path))
    np.testing.assert_array_equal(found.operands["samples"], expected.T)
    wide = np.dtype(kind).itemsize > 4 or name.startswith(("i32", "u32"))
    assert found.operands["samples"].dtype == (np.complex128 if wide else np.complex64)
    write(tmp_path, data[..., 0], f"r{name}", num_channels=channels)
    given = case(path) | {"kind": "channelise", "real": True, "channels": 4, "taps": 2}
    real = study_of(given).workload("w").stage().held().operands["samples"]
    assert real.dtype.kind == "f"
    np.testing.assert_array_equal(real.reshape(channels, -1), values[..., 0].T)


def test_times_frequency_and_files(tmp_path: Path) -> None:
    data = np.arange(128, dtype="<i2")
    path = write(tmp_path, data, "ci16_le", {**CAPTURE, "core:sample_start": 4, "x": 1})
    for given in (path, path.with_suffix(".sigmf-data")):
        found = staged(case(given, select={"samples": ["8:24"]}))
        np.testing.assert_array_equal(found.operands["samples"][0].real, data[16:48:2])
        time = found.coordinates["time"]
        np.testing.assert_allclose(time.values, (np.arange(8, 24) - 4) / 2e6, atol=1e-18)
        assert (time.units, time.long_name) == ("s", "time since 2026-11-28T10:00:00.5Z")
        tuned = found.coordinates["selected_frequency"]
        assert (tuned.values.tolist(), tuned.units) == ([915e6], "Hz")
        assert tuned.long_name == "frequency that was tuned to"
        files = [str(tmp_path / f"r.sigmf-{end}") for end in ("meta", "data")]
        assert list(map(str, study_of(case(given)).input_files("w"))) == files
        assert list(found.attributes["files_sha256"]) == files
    write(tmp_path, data.astype("u1"), "cu8", header_bytes=None)
    rtl = staged(case(path, zero_level=127.5)).operands["samples"]
    np.testing.assert_array_equal(rtl[0].real, data[::2] - 127.5)
    write(tmp_path, data, "ci16_le", {"core:header_bytes": 8})
    plain = staged(case(path))
    np.testing.assert_array_equal(plain.operands["samples"][0].real, data[4::2])
    assert plain.coordinates["time"].long_name == "time"
    assert "selected_frequency" not in plain.coordinates


@pytest.mark.parametrize(
    ("more", "first", "said"),
    [
        ({}, 914e6, "centre of the channel"),
        ({"centre_hz": 1e6}, 0.0, "centre of the channel"),
        ({"real": True}, 0.0,
         "centre of the channel, from frequency 0 of the samples, which are real"),
        ({"kind": "dft", "shift": True}, -1e6, "frequency, less the one that was tuned to"),
        ({"kind": "dft", "power": True, "length": 8, "shift": True}, -1e6,
         "frequency, less the one that was tuned to"),
        ({"kind": "dft"}, 0.0, "frequency, less the one that was tuned to (the upper half are the "
         "negative ones)"),
        ({"kind": "dft", "power": True, "real": True, "length": 8}, 0.0, "frequency"),
        ({"kind": "dft", "power": True, "length": 8}, 0.0, "frequency"),
    ],
)  # fmt: skip
def test_frequencies_are_about_what_was_tuned_to(
    tmp_path: Path, more: dict[str, Any], first: float, said: str
) -> None:
    real = "real" in more or said == "frequency"
    data = np.arange(64, dtype="<i2")
    path = write(tmp_path, data, "ri16_le" if real else "ci16_le")
    bank = {"kind": "channelise", "channels": 4, "taps": 2, "shift": not real}
    given = case(path) | ({} if "kind" in more else bank) | more
    one = study_of(given).workload("w")
    found = one.product_outline(one.outline()).coordinates
    assert (found["frequency"].values[0], found["frequency"].long_name) == (first, said)
    assert found["selected_frequency"].values.tolist() == [915e6]


def test_samples_of_a_transform_back_are_tuned_as_before(tmp_path: Path) -> None:
    """Samples made of some of the bins have the first of these at their frequency 0."""
    path = write(tmp_path, np.arange(128, dtype="<i2"), "ci16_le")
    part = {"samples": {"workload": "bins"}, "select": {"samples": {"frequency": "48:"}}}
    back = {"kind": "dft", "axis": "frequency", "inverse": True}
    found = run(study_of_all({
        "bins": {"kind": "dft", "axis": "time", "input": case(path)["input"]},
        "back": {**back, "input": {"samples": {"workload": "bins"}}},
        "part": {**back, "input": part},
    }), tmp_path)  # fmt: skip
    tuned, first = (found[name].coordinates["selected_frequency"] for name in ("back", "part"))
    assert (tuned.long_name, tuned.values[0], first.values[0]) == (TUNED, 915e6, 914.5e6)


def test_what_was_tuned_to_is_added_once(tmp_path: Path) -> None:
    """Channels of channels count from frequency 0 of their samples: the carrier is added once."""
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le")
    bank = {"kind": "channelise", "channels": 4, "taps": 2, "shift": True, "axis": "time"}
    of_bank = {"samples": {"workload": "bank"}}
    of_one = {**of_bank, "select": {"samples": {"frequency": 1}}}
    found = run(
        study_of_all({
            "bank": case(path) | bank,
            "fine": {**bank, "input": of_bank}, "one": {**bank, "input": of_one},
            "spectra": {"kind": "dft", "shift": True, "axis": "time", "input": of_bank},
        }),
        tmp_path,
    )  # fmt: skip
    np.testing.assert_array_equal(
        found["bank"].coordinates["frequency"].values, [914e6, 914.5e6, 915e6, 915.5e6]
    )
    for name, own, selected, said in (
        ("fine", "fine_frequency", 915e6, "centre of the channel, from frequency 0 of the samples"),
        ("one", "frequency", 914.5e6, "centre of the channel, from frequency 0 of the samples"),
        ("spectra", "time_frequency", 915e6, "time_frequency"),
    ):
        there = found[name].coordinates
        assert there[own].long_name == said
        assert -250e3 <= there[own].values.min() < -200e3
        assert there["selected_frequency"].values.tolist() == [selected]


def test_receivers_are_antennas_at_what_was_tuned_to(tmp_path: Path) -> None:
    """They were frequency channels, and places that a study gave them had other names."""
    rng, apart = np.random.default_rng(3), 299_792_458.0 / 915e6 / 2
    phases = np.exp(2j * np.pi * np.arange(4) * 0.5 * 0.25)  # from l = 0.25
    wave = rng.normal(size=(64, 2)) @ [1, 1j]
    values = (wave[:, None] * phases).astype(np.complex64)
    path = write(tmp_path, values.view("<f4"), "cf32_le", num_channels=4)
    given = {"file": str(path), "format": "sigmf", "voltages": "samples"}
    said = "'receiver' is none of ['frequency', 'polarization', 'antenna', 'time'], so the axes"
    assert said in error_of({"kind": "correlate", "input": given})
    channels = study_of({"kind": "correlate", "input": {**given, "axes": ["time", "channel"]}})
    assert "frequency" not in channels.workload("w").outline().coordinates
    place = {"axis": "antenna", "units": "m"}
    given |= {
        "axes": ["time", "antenna"],
        "coordinates": {
            "east": {**place, "values": [apart * n for n in range(4)]},
            "north": {**place, "values": [0.0] * 4},
        },
    }
    study = study_of_all({
        "vis": {"kind": "correlate", "input": given},
        "sky": {
            "kind": "image", "directions": {"n": 9, "field_of_view_deg": 60},
            "input": {"covariances": {"workload": "vis"}},
        },
    })  # fmt: skip
    found = run(study, tmp_path)
    hertz = found["vis"].coordinates["frequency"]
    assert (hertz.values.tolist(), hertz.units) == ([915e6], "Hz")
    assert hertz.long_name == "frequency that was tuned to"
    assert "selected_frequency" not in found["vis"].coordinates
    sky = found["sky"]
    column = int(sky.data[0, 0].max(axis=0).argmax())
    np.testing.assert_allclose(sky.coordinates["l"].values[column], 0.25, atol=1e-12)


def test_a_recording_of_the_package(tmp_path: Path) -> None:
    sigmf = pytest.importorskip("sigmf", reason="sigmf is not installed")
    data = (np.arange(64) * (1 - 2j)).astype(np.complex64)
    data.tofile(tmp_path / "p.sigmf-data")
    meta = sigmf.SigMFFile(
        data_file=str(tmp_path / "p.sigmf-data"),
        global_info={"core:datatype": "cf32_le", "core:sample_rate": 1e6},
    )
    meta.add_capture(0, metadata={"core:frequency": 1e9})
    meta.tofile(str(tmp_path / "p.sigmf-meta"))
    found = staged(case(tmp_path / "p.sigmf-meta"))
    np.testing.assert_array_equal(found.operands["samples"][0], data)
    assert found.coordinates["selected_frequency"].values.tolist() == [1e9]


@pytest.mark.parametrize(
    ("captures", "offset", "first"),
    [
        ([capture(5000, datetime="2026-11-28T10:00:00Z")], 5000, 0.0),
        ([capture(5004, datetime="2026-11-28T10:00:00Z")], 5000, -2e-6),
        ([], 5000, 0.0),
        # Dates of whole seconds are as far apart as samples, as far as they say.
        ([capture(0, datetime="2026-11-28T10:00:00Z"), capture(32, datetime="2026-11-28T10:00:01Z"),
          capture(64, global_index=3), capture(66, global_index=5, header_bytes=0)], None, 0.0),
        # As programs without whole numbers write JSON.
        ([capture(0.0, header_bytes=0.0, global_index=6.0), capture(64.0, global_index=70.0)], 0.0,
         0.0),
    ],
)  # fmt: skip
def test_captures_count_samples_from_the_offset(
    tmp_path: Path, captures: Any, offset: Any, first: float
) -> None:
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", {}, offset=offset)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "captures": captures}))
    time = staged(case(path)).coordinates["time"]
    np.testing.assert_allclose(time.values[:2], [first, first + 5e-7], atol=1e-18)


@pytest.mark.parametrize(
    ("late", "is_fault"), [(0.0, False), (0.9, False), (1.1, True), (-0.9, False), (-1.1, True)]
)
def test_clocks_of_samples_and_of_dates_may_be_apart(late: float, is_fault: bool) -> None:
    """Clocks may be apart by 100 ppm, which is 0.36 s in an hour."""
    hour = datetime(2026, 11, 28, 13, tzinfo=UTC) + timedelta(seconds=0.36 * late)
    captures = [
        {"core:sample_start": 0, "core:datetime": "2026-11-28T12:00:00.000000Z"},
        {"core:sample_start": 3600 * 1000, "core:datetime": hour.isoformat()},
    ]
    assert bool(fault_in(captures, 0, 1000.0)) == is_fault


NOON = "2026-11-28T12:00:00.000Z"


@pytest.mark.parametrize(
    ("captures", "offset", "said"),
    [
        ([capture(0), capture(64)], 8, "its first capture must have a core:sample_start from "
         "core:offset 8 on, got 0"),
        ([capture(0), capture(64), capture(60)], None, "its captures must be in the order of "
         "core:sample_start, got 64 and 60"),
        ([capture(0, global_index=7), capture(64, global_index=80)], None, "its captures from "
         "samples 0 and 64 on are 64 samples apart, by core:global_index 73: samples are missing"),
        ([capture(0, datetime=NOON), capture(64, datetime="2026-11-28T13:00:00.250+01:00")], None,
         "its captures from samples 0 and 64 on are 3.2e-05 s apart at core:sample_rate 2000000, "
         "by core:datetime 0.25 s: samples are missing between them, or the rate is another"),
    ],
)  # fmt: skip
def test_captures_between_which_samples_are_missing(
    tmp_path: Path, captures: Any, offset: Any, said: str
) -> None:
    """Unless the study says the times of the samples."""
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", *captures, offset=offset)
    error = error_of(case(path))
    assert error.startswith(f"input.file: {path}: {said}")
    assert error.endswith("; or give input.coordinates.time")
    found = staged(case(path, coordinates={"time": {"step_s": 0.25}}))
    np.testing.assert_array_equal(found.coordinates["time"].values, np.arange(128) / 4)


def test_a_rate_that_the_recording_does_not_say(tmp_path: Path) -> None:
    path = write(tmp_path, np.arange(256, dtype="<i2"), "ci16_le", sample_rate=3.0)
    content = json.loads(path.read_text())
    del content["global"]["core:sample_rate"]
    path.write_text(json.dumps(content))
    assert error_of(case(path)) == (
        f"input.file: {path}: its global object has no core:sample_rate; or give "
        "input.coordinates.time"
    )
    found = staged(case(path, coordinates={"time": {"step_s": 0.5}})).coordinates
    np.testing.assert_array_equal(found["time"].values, np.arange(128) / 2)
    assert found["selected_frequency"].values.tolist() == [915e6]
