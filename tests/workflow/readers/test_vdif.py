"""VDIF files by a stand-in of baseband, and voltages of the files that come with baseband."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import firwin
from test_chains import run

from tests.workflow.inputs.one_input import OneInput
from tests.workflow.one_case import error_of, study_of
from tests.workflow.readers.baseband_stand_in import Stream, install
from tests.workflow.readers.uvh5_file import case
from tools.examples import read_sources
from workflow.files.input_error import InputError
from workflow.inputs.source_attributes import source_attributes
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.readers import READERS


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


def sample(name: str) -> str:
    """One of the files that come with baseband."""
    data = pytest.importorskip("baseband.data", reason="baseband is not installed")
    return str(getattr(data, name))


def test_a_pulsar_backend_through_a_filter_bank_to_stokes_parameters(tmp_path: Path) -> None:
    """GUPPI's sample file, its polarizations and channels as baseband itself reads them."""
    path = sample("SAMPLE_PUPPI")
    (published,) = read_sources()["pulsar"].files.values()
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == published["sha256"]
    from baseband import guppi

    channels = {
        "kind": "channelise", "channels": 16, "taps": 4, "axis": "time",
        "input": {"file": path, "format": "guppi", "samples": "voltages"},
    }  # fmt: skip
    power = {
        "kind": "beamforming", "beams": 1, "detect": "stokes", "integrate": 8,
        "input": {
            "samples": {"workload": "channels"},
            "axes": {"samples": ["polarization", "channel", "time", "fine_frequency"]},
            "select": {"samples": {"fine_frequency": 3, "time": "0:240"}},
        },
    }  # fmt: skip
    study = load_study({
        "device": "cpu", "precisions": ["fp64"], "baselines": "none",
        "workloads": {"channels": channels, "power": power},
    })  # fmt: skip
    found = run(study, tmp_path)
    with guppi.open(path, "rs") as stream:
        x = stream.read()
    frames = sliding_window_view(x[: 16 * 243], 64, axis=0)[::16] * firwin(64, 1 / 16)
    folded = frames.reshape(240, 2, 4, 4, 16).sum(axis=3)
    spectra = np.fft.fft(folded)[..., 3]  # (time, polarization, channel)
    intensity = np.square(np.abs(spectra)).sum(axis=1).reshape(30, 8, 4).sum(axis=1)
    assert found["power"].axes == ("frequency", "stokes", "beam", "time")
    np.testing.assert_allclose(found["power"].data[:, 0, 0].T, intensity, rtol=1e-5)


@pytest.mark.parametrize(("name", "real"), [("SAMPLE_DADA", False), ("SAMPLE_MEERKAT_DADA", True)])
def test_real_samples_stay_real(name: str, real: bool) -> None:
    given = {
        "kind": "channelise", "channels": 64, "taps": 4, "axis": "time", "real": real,
        "input": {"file": sample(name), "format": "dada", "samples": "voltages"},
    }  # fmt: skip
    study = study_of(given)
    check_study(study)
    staged = study.workload("w").stage()
    assert staged.operands["samples"].dtype == (np.float32 if real else np.complex64)
    assert staged.operands["samples"].any()


def test_a_file_that_baseband_cannot_read(tmp_path: Path) -> None:
    given = case(Path(sample("SAMPLE_MWA_VDIF")), format="vdif", samples="voltages")
    assert "cannot be read as vdif (" in error_of(given | {"axis": "time"})


@pytest.mark.filterwarnings("ignore:problem loading frame set:UserWarning")
def test_frames_of_a_vdif_file_that_are_invalid_or_missing(tmp_path: Path) -> None:
    pytest.importorskip("baseband", reason="baseband is not installed")
    from astropy import units
    from astropy.time import Time
    from baseband import vdif

    first = vdif.VDIFHeader.fromvalues(
        edv=1, time=Time("2020-01-01T00:00:00"), samples_per_frame=160, nchan=1, bps=8,
        sample_rate=1 * units.MHz, complex_data=True, thread_id=0, station="me",
    )  # fmt: skip
    path = tmp_path / "v.vdif"
    with vdif.open(str(path), "ws", header0=first, nthread=2) as stream:
        ones = np.full((1600, 2), 0.25 + 0.25j)
        stream.write(ones[:480])
        stream.write(ones[:160], valid=False)
        stream.write(ones[640:])
    assert "thread_id" not in READERS["vdif"](path).outline("voltages").coordinates
    frame = len(path.read_bytes()) // 20
    path.write_bytes(path.read_bytes()[: 10 * frame] + path.read_bytes()[11 * frame :])
    given = case(path, format="vdif", samples="voltages") | {"axis": "time"}
    given["input"]["select"] = {"samples": {"frequency": 0}}
    for end, lost in (("480", 0), ("640", 320), ("1600", 480)):
        given["input"]["select"]["samples"]["time"] = f"0:{end}"
        given["input"]["flagged"] = "refuse"
        if lost:
            with pytest.raises(InputError, match=f"at time 480: {lost} of the {2 * int(end)} valu"):
                study_of(given).workload("w").stage()
        given["input"]["flagged"] = "zero"
        found = study_of(given).workload("w").stage().held().operands["samples"]
        assert np.count_nonzero(found == 0) == lost


def test_threads_of_a_vdif_file_have_their_numbers(tmp_path: Path) -> None:
    """The file lacks the first of them, and a study may call the axis as it likes."""
    content = Path(sample("SAMPLE_VDIF")).read_bytes()
    frames = [content[at : at + 5032] for at in range(0, len(content), 5032)]
    kept = [one for one in frames if int.from_bytes(one[12:16], "little") >> 16 & 0x3FF in (3, 6)]
    path = tmp_path / "v.vdif"
    path.write_bytes(b"".join(kept))
    found = READERS["vdif"](path).outline("voltages")
    assert found.coordinates["thread_id"].values.tolist() == [3, 6]
    given = case(path, format="vdif", samples="voltages") | {"axis": "time"}
    given["input"]["axes"] = ["time", "antenna", "frequency"]
    given["input"]["coordinates"] = {"antenna": ["Ef", "Wb"]}
    staged = study_of(given).workload("w").stage().coordinates
    assert staged["antenna"].values.tolist() == ["Ef", "Wb"]
    assert staged["antenna_thread_id"].values.tolist() == [3, 6]


def test_files_cut_behind_their_first_header() -> None:
    """A header that is padded to 512 bytes (DIRECTIO), and one with numbers as text."""
    for name, size, there in (("BLC", 134217728, 0), ("VEGAS", 132186112, 7920)):
        given = case(Path(sample(f"SAMPLE_{name}")), format="guppi", samples="voltages")
        said = f"is cut: it has {there} of {size} bytes; `flagged: zero` in the input leaves it out"
        assert said in error_of(given | {"axis": "time"})
