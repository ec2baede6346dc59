"""Mistakes in the keys of each kind of workload: one clear line before anything is read."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from workflow.workloads import KINDS

Mistakes = list[tuple[dict[str, Any], str]]
BEAMS = {"beams": 25, "antennas": 16, "samples": 400, "channels": 2, "polarizations": 2}
CHANNELS = {"channels": 32, "taps": 8, "antennas": 2, "samples": 32 * 60, "sample_rate_hz": 3.2e6}
SPECTRA = {
    "power": True, "length": 32, "segments": 60, "batch": 3, "window": "hann",
    "sample_rate_hz": 3.2e3, "tones": [{"frequency": 5 / 32, "amplitude": 2.0}],
}  # fmt: skip
GRID = {"n": 21, "field_of_view_deg": 40}
IMAGE = {"antennas": 30, "directions": GRID, "radius_m": 12.0, "channels": 2, "noise": 0.3}
PRODUCT = {"m": 3, "n": 5, "k": 7}
RANDOM = {"name": "random", "qubits": 4, "depth": 4, "seed": 2}
NOISE = {"depolarising": 0.05, "damping": 0.1, "trajectories": 8000}
MISTAKES: dict[str, tuple[str, dict[str, Any], Mistakes]] = {
    "adaptive": ("adaptive", {}, [
        ({"antennas": 4}, "beams must be given"),
        ({"beams": 4}, "antennas must be given"),
        ({"antennas": 129, "beams": 1}, "less than or equal to 128"),
        ({"antennas": 4, "beams": 1, "loading": -1.0}, "greater than or equal to 0"),
        ({"antennas": 4, "beams": 1, "allow_nonfinite": True}, "has no weights"),
        ({"antennas": 4, "beams": 1, "rounding": {"tf32": "half_ulp_truncate"}},
         "rounding must not"),
        ({"beams": 2, "input": {"file": "/f.h5", "covariances": "r", "weights": "w"}},
         "beams, extent and phase_centre must not be given"),
        ({"beams": 9, "extent": 0.8, "input": {"file": "/f.h5", "covariances": "r"}},
         "extent: all beams about phase_centre must stay above the horizon"),
        ({"antennas": 4, "beams": 4, "extent": 0.71}, "about the zenith a planar grid has an ext"),
    ]),
    "beamforming": ("beamforming", {}, [
        ({"beams": 3, "samples": 2}, "antennas must be given"),
        (BEAMS | {"sources": [{"l": 0.1, "azimuth_deg": 3}]}, "either l and m, or azimuth"),
        (BEAMS | {"sources": [{"l": 0.9, "m": 0.9}]}, "must be at most 1"),
        ({"input": {"file": "f", "weights": "w", "samples": "s"}, "noise": 2}, "noise must not be"),
        (BEAMS | {"extent": 0.9}, "must stay above the horizon.* at most 0.707"),
        (BEAMS | {"phase_centre": {"azimuth_deg": 90, "elevation_deg": 30}}, "distance of 1.455"),
        (BEAMS | {"phase_centre": {"l": 0.3}}, "phase_centre must have either l and m, or"),
        (BEAMS | {"array": {"geometry": "ring"}}, "'linear' or 'planar'"),
    ]),
    "detected beams": ("beamforming", BEAMS | {"samples": 120}, [
        ({"integrate": 8}, "integrate needs detect, got 8 without"),
        ({"detect": "phase"}, "'power' or 'stokes'"),
        ({"detect": "power", "integrate": 7},
         "integrate must divide the 120 samples along time, got 7; 119 of them"),
        ({"detect": "power", "integrate": 0}, "greater than or equal to 1"),
        ({"detect": "stokes", "polarizations": 1}, "needs polarizations: 2, got 1"),
        ({"detect": "power", "precisions": ["7xint8"]}, "precisions with detect must be of"),
        ({"detect": "power", "kernels": {"fp16": "wgmma"}}, "kernels must not be given"),
    ]),
    "channelise": ("channelise", CHANNELS, [
        ({"channels": 1}, "greater than or equal to 2"),
        ({"taps": 0}, "greater than or equal to 1"),
        ({"channels": 1 << 20, "taps": 1024}, "channels times taps must be at most"),
        ({"oversampling": "3/4"}, "oversampling must be at least 1"),
        ({"oversampling": "5/4"}, "channels must be a multiple of 5"),
        ({"oversampling": "x"}, "oversampling must be a fraction"),
        ({"oversampling": 1.33}, "oversampling must be a fraction such as 4/3, got 1.33"),
        ({"oversampling": 1e300}, "oversampling must be a fraction"),
        ({"oversampling": "1/0"}, "oversampling must be a fraction"),
        ({"oversampling": "1e99999999"}, "oversampling must be a fraction"),
        ({"sample_rate_hz": 5e-324}, "greater than or equal to 0.000000001"),
        ({"tones": [{"frequency": 0.1, "amplitude": 1e300}]}, "less than or equal to 1"),
        ({"samples": 100}, "samples must be at least channels times taps, 256, got 100"),
        ({"samples": None}, "samples must be given where there is no input"),
        ({"real": True, "shift": True}, "shift must not be given beside real"),
        ({"axis": 0}, "axis may be given beside an input"),
        ({"rounding": {"tf32": "toward_zero"}}, "rounding must not be given"),
        ({"input": {"samples": "x", "file": "a.h5"}}, "samples must not be given beside input"),
    ]),
    "correlate": ("correlate", {"antennas": 16, "samples": 600, "integrate": 200}, [
        ({"samples": None}, "samples must be given"),
        ({"integrate": 7}, "integrate must divide the 600 samples along time, got 7"),
        ({"form": "upper"}, "form"), ({"integrate": 0}, "integrate"),
        ({"sources": [{"l": 0.9, "m": 0.9}]}, "must be at most 1"),
    ]),
    "dft": ("dft", {}, [
        ({}, "length must be given"),
        ({"input": {"file": "f", "samples": "s"}, "tones": []}, "tones must not be given beside"),
        ({"length": 8, "norm": "none"}, "'backward', 'ortho' or 'forward'"),
        ({"length": 8, "tones": [{"frequency": 7}]}, "less than or equal to 1"),
    ]),
    "power spectra": ("dft", SPECTRA, [
        ({"power": False}, "segments may be given beside power: true alone"),
        ({"overlap": 32}, "overlap must be below length, 32, got 32"),
        ({"average": 0}, "average must be from 1 on, or 'all', got 0"),
        ({"average": "most"}, "average"),
        ({"segments": 0}, "greater than or equal to 1"),
        ({"sample_rate_hz": 0}, "greater than or equal to 0.000000001"),
        ({"inverse": True}, "inverse must not be given beside power"),
        ({"norm": "ortho"}, "norm must not be given beside power"),
        ({"scaling": "power"}, "'density' or 'spectrum'"),
        ({"real": True, "shift": True}, "shift must not be given beside real"),
        ({"rounding": {"tf32": "toward_zero"}}, "rounding must not be given"),
        ({"length": None}, "length must be given where there is no input"),
        ({"input": {"samples": "x", "file": "a.h5"}}, "batch must not be given beside input"),
    ]),
    "gemm": ("gemm", {}, [
        ({"m": 2, "n": 2}, "k must be given where there is no input"),
        ({"m": 2, "n": 2, "k": 2, "alpha": "1+2i"}, r"must be a number or \[re, im\], got '1\+2i'"),
        ({"m": 2, "n": 2, "k": 0}, "greater than or equal to 1"),
        ({"m": 2, "n": 2, "k": 2, "init": "cauchy"}, "'normal', 'uniform', 'integer' or"),
        ({"m": 2, "n": 2, "k": 2, "op_a": "H"}, "'N', 'T' or 'C'"),
        ({"input": {"file": "x", "a": "a", "b": "b"}, "m": 3}, "m must not be given beside input"),
        ({"input": {"file": "x", "a": "a", "b": "b"}, "beta": 1}, "input.c must be given where"),
    ]),
    "image": ("image", IMAGE, [
        ({"directions": {"n": 5}}, "either field_of_view_deg or cell_arcmin"),
        ({"directions": {**GRID, "cell_arcmin": 3}}, "either field_of_view_deg or cell_arcmin"),
        ({"directions": {"n": 5, "field_of_view_deg": 100}}, "corners must stay above the horizon"),
        ({"directions": {**GRID, "phase_centre": {"l": 0.9, "m": 0}}}, "stay above the horizon"),
        ({"directions": {**GRID, "phase_centre": {"l": 0.9}}}, "must have either l and m, or azim"),
        ({"directions": {**GRID, "phase_centre": {"l": 0.9, "m": 0.9}}}, "must be at most 1"),
        ({"antennas": None}, "antennas must be given where there is no input"),
        ({"sum": ["time", "time"]}, "each axis once"),
        ({"rounding": {"tf32": "toward_zero"}}, "rounding must not be given"),
    ]),
    "mimo": ("mimo", {}, [
        ({"receivers": 4}, "transmitters must be given"),
        ({"receivers": 2, "transmitters": 3}, "at most the 2 receivers, got 3"),
        ({"receivers": 2, "transmitters": 2, "qam": 8}, "4, 16, 64, 256 or 1024"),
        ({"receivers": 2, "transmitters": 2, "snr_db": [5.0, 3.0]}, "must ascend"),
        ({"receivers": 200, "transmitters": 129}, "less than or equal to 128"),
        ({"receivers": 2, "transmitters": 1, "allow_nonfinite": True}, "carries no symbols"),
        ({"paths": 3, "input": {"file": "/f.h5", "channel": "h"}}, "paths must not be given"),
        ({"receivers": 2, "transmitters": 1, "soft_bits": True, "hard_bits": True},
         "soft_bits and hard_bits must not both be true"),
        ({"receivers": 2, "transmitters": 1, "soft_bits": True, "shards": 2},
         "shards must be 1 beside bits, got 2: those of all subcarriers and times are"),
    ]),
    "softmax": ("softmax", {}, [
        ({"rows": 3}, "columns must be given"),
        ({"rows": 3, "input": {"workload": "b"}}, "rows must not be given beside input"),
        ({"input": {"file": "f", "x": "x"}, "scale": 2}, "scale must not be given beside"),
    ]),
    "solve": ("solve", {}, [
        ({}, "n must be given where there is no input"),
        ({"n": 0}, "greater than or equal to 1"),
        ({"n": 4, "ka": 3}, "ka must be given where source is cylinder, and only there"),
        ({"n": 4, "source": "cylinder"}, "ka must be given where source is cylinder"),
        ({"n": 5, "source": "cylinder", "ka": 1}, "n must be even where source is cylinder, got 5"),
        ({"n": 4, "source": "cylinder", "ka": 1, "batch": 2}, "batch must be 1"),
        ({"n": 4, "source": "sphere"}, "'normal' or 'cylinder'"),
        ({"n": 4, "allow_nonfinite": True}, "no x solves a system with NaN or Inf"),
        ({"n": 4, "rounding": {"tf32": "nearest_even"}}, "rounding must not be given"),
        ({"n": 4, "precisions": ["5xint8"]}, "must be one of .*'15xint8'.* got '5xint8'"),
        ({"n": 4, "input": {"file": "f", "a": "a", "b": "b"}}, "n must not be given beside input"),
        ({"input": {"file": "f", "a": "a", "b": "b"}, "ka": 3}, "ka must not be given beside"),
    ]),
    "readout": ("statevector", {"circuit": RANDOM}, [
        ({"shots": 5, "probabilities": [0]}, "shots and probabilities must not be given together"),
        ({"shots": 0}, "greater than or equal to 1"),
        ({"shots": 2**31}, "less than or equal to"),
        ({"observables": []}, "at least 1 item"),
        ({"observables": ["ZZA"]}, "match pattern"),
        ({"observables": ["Z" * 65]}, "at most 64"),
        ({"observables": [{"pauli": "Z", "coefficient": 0}]}, "finite and not 0"),
        ({"observables": [{"pauli": "Z", "coefficient": math.nan}]}, "finite number"),
        ({"probabilities": [1, 1]}, "different qubits"),
        ({"probabilities": [-1]}, "greater than or equal to 0"),
        ({"probabilities": list(range(31))}, "at most 30"),
    ]),
    "noisy readout": ("statevector", {"circuit": RANDOM, "noise": NOISE}, [
        ({}, "noise must have one of shots, observables, probabilities to read out, got none"),
        ({"shots": 5}, "trajectories must not be given with shots, got 8000: each of the 5 shots"),
        ({"shots": 1, "noise": {"damping": 0.1}}, "shots must be from 2 to 10000000 with noise"),
        ({"shots": 10**8, "noise": {"damping": 0.1}}, "with noise, got 100000000"),
        ({"probabilities": [0], "noise": {"damping": 0.1}}, "must be given with probabilities"),
        ({"probabilities": [0], "initial": "zero"}, "initial must not be given with noise"),
        ({"probabilities": [0], "fuse": 2}, "fuse must not be given with noise"),
        ({"probabilities": [0], "noise": {"trajectories": 9}}, "damping probability"),
        ({"probabilities": [0], "noise": {**NOISE, "damping": 1.5}}, "less than or equal to 1"),
        ({"probabilities": [0], "noise": {**NOISE, "damping": math.nan}}, "noise.damping"),
        ({"probabilities": [0], "noise": {**NOISE, "trajectories": 1}}, "greater than or equal"),
        ({"probabilities": [0], "noise": {**NOISE, "trajectories": 10**8}}, "less than or equal"),
        ({"probabilities": [0], "noise": {**NOISE, "bitflip": 0.1}}, "noise.bitflip"),
    ]),
    "circuits": ("statevector", {}, [
        ({"circuit": {}}, "circuit must have either file or name"),
        ({"circuit": {"name": "qft", "file": "x"}}, "circuit must have either file or name"),
        ({"circuit": {"name": "qft"}}, "circuit.qubits must be given for the named circuit 'qft'"),
        ({"circuit": {"name": "shor", "qubits": 3}}, "'qft', 'ghz' or 'random'"),
        ({"circuit": {"name": "ghz", "qubits": 3, "depth": 2}}, "depth must be given for a random"),
        ({"circuit": {"name": "qft", "qubits": 99}}, "less than or equal to 34"),
        ({"circuit": {"file": "x.qasm", "qubits": 3}}, "must not be given beside circuit.file"),
        ({"circuit": RANDOM, "allow_nonfinite": True}, "amplitudes with NaN or Inf are no state"),
    ]),
    "kernels of gemm": ("gemm", PRODUCT, [
        ({"kernels": {"tf32": "mma"}}, r"Input should be 'wgmma', 'mma\.sync' or 'cublas'"),
        ({"kernels": {"fp32": "wgmma"}}, r"at fp32 must be one of \['cublas'\], got 'wgmma'"),
        ({"kernels": {"tf23": "wgmma"}}, "must be one of"),
    ]),
}  # fmt: skip
"""By name a kind, keys that are right for it, and keys beside those with what is said of them."""


@pytest.mark.parametrize(
    ("kind", "keys", "said"),
    [
        pytest.param(kind, right | changes, said, id=f"{name}: {said}")
        for name, (kind, right, mistakes) in MISTAKES.items()
        for changes, said in mistakes
    ],
)
def test_mistakes_of_a_kind_are_named(kind: str, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        KINDS[kind].case_type.model_validate({"kind": kind, **keys})


def test_every_kind_has_some() -> None:
    assert {kind for kind, _, _ in MISTAKES.values()} == set(KINDS)
