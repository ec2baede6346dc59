"""VDIF files by a stand-in of baseband: rates, invalid frames, headers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.workflow.inputs.one_input import OneInput
from tests.workflow.one_case import error_of, study_of
from tests.workflow.readers.baseband_stand_in import Stream, install
from tests.workflow.readers.uvh5_file import case
from workflow.files.input_error import InputError
from workflow.inputs.source_attributes import source_attributes
from workflow.preflight.check import check_study


def frames_of_zeros(folder: Path) -> Path:
    """A file, which the stand-in does not read."""
    path = folder / "v.vdif"
    path.write_bytes(bytes(2 * 36))
    return path


def voltages_of(path: Path) -> dict[str, Any]:
    """A workload of all of the file's samples along time."""
    return case(path, format="vdif", samples="voltages") | {"axis": "time"}


def test_the_sample_rate_of_a_vdif_file_that_does_not_tell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = frames_of_zeros(tmp_path)

    def opened(*_: Any, sample_rate: float | None = None, **__: Any) -> Stream:
        if sample_rate is None:
            raise EOFError("Try passing in an explicit `sample_rate`.")
        assert sample_rate == 4.0
        return Stream()

    install(monkeypatch, "vdif", opened)
    monkeypatch.setitem(sys.modules, "astropy.units", SimpleNamespace(Hz=1.0))
    given = voltages_of(path)
    assert "(EOFError: Try passing in an explicit `input.sample_rate_hz`.)" in error_of(given)
    given["input"]["sample_rate_hz"] = 4.0
    study = study_of(given)
    check_study(study)
    found = study.workload("w").stage().coordinates["time"]
    np.testing.assert_array_equal(found.values, np.arange(6) / 4)
    install(monkeypatch, "vdif", lambda *_, **__: Stream())
    assert error_of(given) == "input.sample_rate_hz: the file says it already; leave it out"
    given["input"]["format"] = "dada"
    assert error_of(given) == "input.sample_rate_hz must not be given beside format: dada"


def test_frames_of_a_vdif_file_that_are_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """baseband has one value for all of their samples, which the reader asks for and finds."""
    path = frames_of_zeros(tmp_path)

    class Lossy(Stream):
        def __init__(self, lost: float) -> None:
            self.data = Stream.data.copy()
            self.data[3:5, 1] = lost

    install(monkeypatch, "vdif", lambda *_, fill_value=0.0, **__: Lossy(fill_value))
    given = voltages_of(path)
    expected = Stream.data.copy()
    expected[3:5, 1] = 0
    for part in ({"time": "0:3"}, {"polarization": 0}):
        given["input"]["select"] = {"samples": part}
        staged = study_of(given).workload("w").stage()
        assert "zeros" not in staged.attributes
        assert np.isfinite(staged.held().operands["samples"]).all()
    given["input"]["select"] = {"samples": {"time": "2:6"}}
    with pytest.raises(InputError) as raised:
        study_of(given).workload("w").stage()
    assert str(raised.value) == (
        f"input.file: {path}: frames are invalid or missing, the first of them at time 3: 6 of the "
        "24 values of times 2 to 5 that are selected; `flagged: zero` in the input makes them 0"
    )
    given["input"]["flagged"] = "zero"
    staged = study_of(given).workload("w").stage()
    assert staged.attributes["zeros"] == {"samples": "6 of 24 values, which are flagged or missing"}
    np.testing.assert_array_equal(
        staged.held().operands["samples"], expected[2:].transpose(1, 2, 0)
    )
    given["input"]["flagged"] = "keep"
    assert "flagged must be refuse or zero beside format: vdif, got keep" in error_of(given)


def test_threads_may_be_subbands_and_channels_polarizations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No header says which; the time is the first axis of any file."""
    path = frames_of_zeros(tmp_path)

    class Threads(Stream):
        sample_shape = SimpleNamespace(_fields=("nthread", "nchan"))
        fh_raw = SimpleNamespace(get_thread_ids=lambda: [0, 1])

    install(monkeypatch, "vdif", lambda *_, **__: Threads())
    given = voltages_of(path)
    given["input"]["axes"] = {"samples": ["time", "frequency", "polarization"]}
    study = study_of(given)
    check_study(study)
    assert study.workload("w").stage().held().axes["samples"] == (
        "frequency", "polarization", "time"
    )  # fmt: skip
    given["input"]["axes"] = {"samples": ["frequency", "time", "polarization"]}
    assert error_of(given).endswith("['frequency', 'time', 'polarization']; correct the study")


def test_a_vdif_header_is_kept_without_what_is_of_one_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Header(dict[str, Any]):
        station = "Ef"

    path = frames_of_zeros(tmp_path)
    held = {"station_id": 17766, "edv": 3, "frame_nr": 7, "_1_30_2": 0, "loif_tuning": 859832320}
    monkeypatch.setattr(Stream, "header0", Header(held))
    install(monkeypatch, "vdif", lambda *_, **__: Stream())
    source = OneInput(file=path, format="vdif", x="voltages")
    said = {"station_id": "Ef", "edv": 3, "loif_tuning": 859832320}
    assert source_attributes(source) == {"header": said}
