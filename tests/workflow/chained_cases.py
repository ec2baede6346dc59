"""Workloads that read the products of others, for tests."""

from __future__ import annotations

from typing import Any

from workflow.preflight.loading import load_study

BEAMS = {
    "kind": "beamforming", "channels": 6, "polarizations": 2, "beams": 4, "antennas": 5,
    "samples": 16,
}  # fmt: skip
CHAIN: dict[str, dict[str, Any]] = {
    "beams": BEAMS,
    "spectra": {"kind": "dft", "axis": "time", "input": {"samples": {"workload": "beams"}}},
    "back": {
        "kind": "dft", "inverse": True, "axis": "time_frequency",
        "input": {
            "samples": {"workload": "spectra"},
            "select": {"samples": {"polarization": 1, "frequency": "1:5:2", "beam": [3, 0]}},
        },
    },
    "matrices": {
        "kind": "gemm", "op_b": "C",
        "input": {
            "a": {"workload": "back"}, "b": {"workload": "back"},
            "axes": {"a": ["batch", "m", "k"], "b": ["batch", "n", "k"]},
        },
    },
}  # fmt: skip


def study_of(workloads: dict[str, Any]) -> Any:
    settings = {"device": "cpu", "precisions": ["fp64"], "baselines": "none"}
    return load_study({**settings, "workloads": workloads})
