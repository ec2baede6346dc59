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
    for format_name, name in (("guppi", "SAMPLE_BLC"), ("vdif", "SAMPLE_MWA_VDIF")):
        given = case(Path(sample(name)), format=format_name, samples="voltages")
        assert f"cannot be read as {format_name} (" in error_of(given | {"axis": "time"})


@pytest.mark.parametrize(("npol", "polarizations"), [(1, 1), (2, 1), (4, 2)])
def test_one_polarization_of_guppi(tmp_path: Path, npol: int, polarizations: int) -> None:
    """Some recorders write NPOL 1 for one polarization, others the real numbers of a sample, 2."""
    pytest.importorskip("baseband", reason="baseband is not installed")
    rng, path, blocks = np.random.default_rng(npol), tmp_path / "one.raw", 3
    parts = rng.integers(-128, 128, (blocks, 4, 32, polarizations, 2), np.int8)
    with path.open("wb") as file:
        for number, block in enumerate(parts):
            header = {
                "OBSFREQ": 1420.0, "OBSBW": -4.0, "OBSNCHAN": 4, "NPOL": npol, "NBITS": 8,
                "TBIN": 1e-6, "OVERLAP": 0, "BLOCSIZE": block.nbytes, "PKTFMT": "'1SFA    '",
                "PKTSIZE": block.nbytes, "PKTIDX": number, "STT_IMJD": 58132, "STT_SMJD": 51093,
                "STT_OFFS": 0.0, "FD_POLN": "'LIN     '",
            }  # fmt: skip
            cards = [f"{key:<8}= {value!s:>20}".ljust(80) for key, value in header.items()]
            file.write("".join([*cards, "END".ljust(80)]).encode() + block.tobytes())
    given = {
        "kind": "dft", "axis": "time",
        "input": {"file": str(path), "format": "guppi", "samples": "voltages"},
    }  # fmt: skip
    study = study_of(given)
    check_study(study)
    staged = study.workload("w").stage().held()
    assert staged.axes["samples"] == ("polarization", "frequency", "time")
    expected = parts.astype(np.float32).view(np.complex64)[..., 0]  # block, channel, time, feed
    expected = np.moveaxis(expected, (3, 1, 0), (0, 1, 2)).reshape(polarizations, 4, 96)
    np.testing.assert_array_equal(staged.operands["samples"], expected)
    there = staged.coordinates
    np.testing.assert_allclose(there["frequency"].values, [1.4215e9, 1.4205e9, 1.4195e9, 1.4185e9])
    np.testing.assert_allclose(there["time"].values, np.arange(96) * 1e-6)
