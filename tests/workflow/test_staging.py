"""Staging: operands that do not fit are an error and not a machine that swaps."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from workflow.steps.staging import stage
from workflow.study import load_study


def test_operands_beyond_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workflow.steps.staging.machine_memory", lambda: 1 << 20)
    study = load_study({"workloads": {"x": {"kind": "gemm", "m": 16384, "n": 8, "k": 16384}}})
    with pytest.raises(MemoryError, match=r"x: its operands do not fit into the 1 MiB of this"):
        stage(study.workload("x"), [], tmp_path / "x.h5", logging.getLogger("test"))
    assert not list(tmp_path.iterdir())
