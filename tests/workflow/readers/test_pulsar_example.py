"""The study of ``examples/pulsar.yaml``, on a recording of the same form: voltages to Stokes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import firwin
from test_chains import run

from tests.workflow.readers.guppi_file import parts, voltages, write
from workflow.preflight.check import check_study
from workflow.preflight.loading import load_study


def test_stokes_parameters_are_those_of_numpys_lines(tmp_path: Path, root: Path) -> None:
    blocks = parts(4, shape=(4, 1024, 2))
    path = tmp_path / "short.raw"
    write(path, blocks, OBSFREQ=356.6875, OBSBW=0.001, TBIN=0.004)
    text = (root / "examples" / "pulsar.yaml").read_text()
    config = yaml.safe_load(text.replace("examples/data/pulsar/sample_puppi.raw", str(path)))
    study = load_study(config | {"device": "cpu", "precisions": ["fp64"], "baselines": "none"})
    check_study(study)
    found = run(study, tmp_path)
    x = voltages(blocks)[..., 1]  # (time, polarization) of the second channel
    frames = sliding_window_view(x, 64, axis=0)[:3840:16] * firwin(64, 1 / 16)
    spectra = np.fft.fft(frames.reshape(240, 2, 4, 16).sum(axis=2))
    one, other = np.fft.fftshift(spectra, axes=-1).swapaxes(0, 1)
    cross = 2 * one.conj() * other
    stokes = (
        abs(one) ** 2 + abs(other) ** 2,
        abs(one) ** 2 - abs(other) ** 2,
        cross.real,
        cross.imag,
    )
    expected = np.stack(stokes).reshape(4, 30, 8, 16).sum(axis=2)  # (stokes, time, frequency)
    power = found["stokes"]
    assert power.axes == ("frequency", "stokes", "beam", "time")
    np.testing.assert_allclose(
        power.data[:, :, 0].transpose(1, 2, 0), expected, rtol=1e-5, atol=1e-5 * expected.max()
    )
    assert power.coordinates["frequency"].values.tolist() == (125 / 8 * np.arange(-8, 8)).tolist()
    assert found["spectrogram"].data.shape == (2, 4, 31, 64)
