"""Voltages of the files that come with baseband."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import firwin
from test_chains import run

from tests.workflow.readers.uvh5_file import case, error_of, study_of
from workflow.config.check import check_study
from workflow.config.loading import load_study


def sample(name: str) -> str:
    """One of the files that come with baseband."""
    data = pytest.importorskip("baseband.data", reason="baseband is not installed")
    return str(getattr(data, name))


def test_a_pulsar_backend_through_a_filter_bank_to_stokes_parameters(tmp_path: Path) -> None:
    """GUPPI's sample file, its polarizations and channels as baseband itself reads them."""
    path = sample("SAMPLE_PUPPI")
    from baseband import guppi

    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["w"] = np.ones((1, 1), np.complex64)
    channels = {
        "kind": "channelise", "channels": 16, "taps": 4, "axis": "time",
        "input": {"file": path, "format": "guppi", "samples": "voltages"},
    }  # fmt: skip
    power = {
        "kind": "beamforming", "detect": "stokes", "integrate": 8,
        "input": {
            "file": str(tmp_path / "w.h5"), "weights": "w", "samples": {"workload": "channels"},
            "axes": {"samples": ["polarization", "channel", "time", "fine_frequency"]},
            "select": {"samples": {"fine_frequency": 3, "time": "0:240"}},
        },
    }  # fmt: skip
    study = load_study({
        "device": "cpu", "precisions": ["fp64"], "baselines": "none",
        "workloads": {"channels": channels, "power": power},
    })  # fmt: skip
    check_study(study)
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


def test_files_cut_behind_their_first_header() -> None:
    """A header that is padded to 512 bytes (DIRECTIO), and one with numbers as text."""
    for name, size, there in (("BLC", 134217728, 0), ("VEGAS", 132186112, 7920)):
        given = case(Path(sample(f"SAMPLE_{name}")), format="guppi", samples="voltages")
        said = f"is cut: it has {there} of {size} bytes; `flagged: zero` in the input leaves it out"
        assert said in error_of(given | {"axis": "time"})
