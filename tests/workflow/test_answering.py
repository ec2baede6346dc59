"""The answer names the files, arrays and products of each workload."""

from __future__ import annotations

from typing import Any

import pytest

from workflow.answering import data_of
from workflow.config.loading import load_study

FILE = "/data/night <1>.h5"
BANK = {"kind": "channelise", "channels": 4, "taps": 1}


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({**BANK, "samples": 64}, ""),
        ({**BANK, "axis": 0, "input": {"file": FILE, "samples": "adc/x"}}, f"adc/x of {FILE}"),
        (
            {"kind": "correlate", "input": {"file": FILE, "voltages": {"real": "a", "imag": "b"}}},
            f"a, b of {FILE}",
        ),
        ({"kind": "correlate", "input": {"voltages": {"workload": "bank"}}}, "the product of bank"),
        (
            {"kind": "beamforming",
             "input": {"file": FILE, "weights": "w", "samples": {"workload": "bank"}}},
            f"w of {FILE}; the product of bank",
        ),
        ({"kind": "statevector", "circuit": {"file": "/c/ghz.qasm"}}, "/c/ghz.qasm"),
        ({"kind": "statevector", "circuit": {"name": "qft", "qubits": 3}}, ""),
        ({"kind": "softmax", "input": {"workload": "beams"}}, "the product of beams"),
        ({"kind": "gemm", "input": {"file": FILE, "a": "x", "b": "x"}}, f"x of {FILE}"),
        (
            {"kind": "gemm", "input": {"a": {"workload": "beams"}, "b": {"workload": "beams"}}},
            "the product of beams",
        ),
    ],
)  # fmt: skip
def test_the_data_of_a_workload(case: dict[str, Any], said: str) -> None:
    others = {
        "bank": {**BANK, "samples": 64, "antennas": 2},
        "beams": {"kind": "beamforming", "antennas": 2, "samples": 4, "beams": 2},
    }
    study = load_study({"workloads": {"w": case, **others}})
    assert data_of(study.workload("w").case) == said
