"""Fixtures of the tests of benchmarks."""

from __future__ import annotations

import pytest
from argand.runtime.measuring.ceilings import Ceilings, operand_formats

from benchmarks.dft import __main__ as dft
from benchmarks.gates import __main__ as gates
from benchmarks.gemm import __main__ as gemm
from benchmarks.harness import measuring
from benchmarks.softmax import __main__ as softmax


@pytest.fixture
def quick_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ceilings that are known, and two copies of operands where a cache holds thousands."""
    found = Ceilings("cpu", 10.0, dict.fromkeys(operand_formats(), 0.1))
    for module in (dft, gates, gemm, softmax):
        monkeypatch.setattr(module, "measure_ceilings", lambda device: found)
    monkeypatch.setattr(measuring, "rotations", lambda *_: 2)
