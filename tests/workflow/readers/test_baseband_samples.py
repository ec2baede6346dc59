"""Voltages of the files that come with baseband."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import firwin
from test_chains import run

from tests.workflow.one_case import error_of, study_of
from tests.workflow.readers.uvh5_file import case
from tools.examples import read_sources
from workflow.files.input_error import InputError
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study
from workflow.readers import READERS


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
