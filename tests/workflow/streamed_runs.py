"""Workloads that are staged, streamed through a device and verified, and one that runs full."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argand import Device
from argand.runtime.measuring.ceilings import Ceilings

from tests.workflow.whole_files import read_result
from workflow.preflight.loading import load_study
from workflow.shards import Shard
from workflow.steps.execute import execute
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.workloads.base import Workload

LOG = logging.getLogger("test")
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "channels": (
        {"kind": "beamforming", "channels": 37, "beams": 5, "antennas": 6, "samples": 90,
         "device_memory": "40 KiB"},
        "frequency",
    ),
    "times": (
        {"kind": "beamforming", "channels": 1, "beams": 5, "antennas": 6, "samples": 4001,
         "polarizations": 2, "device_memory": "90 KiB"},
        "time",
    ),
    "stokes": (
        {"kind": "beamforming", "channels": 37, "beams": 5, "antennas": 6, "samples": 90,
         "polarizations": 2, "detect": "stokes", "integrate": 9, "device_memory": "60 KiB"},
        "frequency",
    ),
    "pairs": (
        {"kind": "correlate", "channels": 37, "antennas": 6, "samples": 96, "integrate": 32,
         "form": "triangle", "device_memory": "60 KiB"},
        "frequency",
    ),
    "batch": (
        {"kind": "gemm", "batch": 33, "m": 6, "n": 7, "k": 8, "op_a": "C", "beta": 2,
         "device_memory": "20 KiB"},
        "batch",
    ),
    "rows": (
        {"kind": "gemm", "m": 2011, "n": 7, "k": 8, "op_a": "T", "alpha": [0, 1],
         "device_memory": "40 KiB"},
        "m",
    ),
    "spectra": (
        {"kind": "dft", "length": 60, "batch": 211, "window": "hann", "device_memory": "60 KiB"},
        "batch",
    ),
    "logits": ({"kind": "softmax", "rows": 517, "columns": 33, "device_memory": "30 KiB"}, "row"),
    "sides": ({"kind": "solve", "n": 12, "rhs": 461, "device_memory": "40 KiB"}, "rhs"),
    "filters": (
        {"kind": "channelise", "channels": 8, "taps": 3, "antennas": 37, "samples": 96,
         "device_memory": "60 KiB"},
        "antenna",
    ),
    "weights": (
        {"kind": "adaptive", "channels": 37, "antennas": 12, "beams": 6, "loading": 3.0,
         "device_memory": "24 KiB"},
        "frequency",
    ),
    "symbols": (
        {"kind": "mimo", "receivers": 8, "transmitters": 2, "subcarriers": 37, "symbols": 9,
         "snr_db": [20.0], "device_memory": "40 KiB"},
        "frequency",
    ),
}  # fmt: skip

NAMES = [
    pytest.param(name, marks=[pytest.mark.exhaustive] * (name in ("filters", "symbols")))
    for name in CASES
]


def workload_of(case: Mapping[str, Any], *precisions: str) -> Workload:
    given = {"precisions": list(precisions or ("fp32", "3xfp16")), "baselines": "auto"}
    return load_study({**given, "workloads": {"w": dict(case)}}).workload("w")


class Ran:
    """A workload that was staged and run in a folder."""

    def __init__(
        self, folder: Path, workload: Workload, device: Device, shard: Shard | None = None
    ) -> None:
        folder.mkdir()
        self.workload, self.device, self.shard = workload, device, shard
        self.staged, self.run = folder / "staged.h5", folder / "run.h5"
        stage(workload, [], self.staged, LOG)
        execute(workload, self.staged, self.run, device, LOG, shard)

    def result(self, implementation: str = "argand", precision: str = "fp32") -> Any:
        return read_result(self.run, implementation, precision)

    def records(self) -> list[Any]:
        ceilings = Ceilings("another", 10.0, {})
        return verify(self.workload, self.staged, self.run, ceilings, LOG, self.shard)


def without_bound(case: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "device_memory"}


SCALE = 64
"""On a GPU all is larger: tables, and the pieces in which memory is given."""
LENGTHS = {
    "frequency": ("subcarriers", "channels"), "time": ("samples",), "row": ("rows",),
    "antenna": ("antennas",),
}  # fmt: skip
"""Keys that say how long an axis is, the first that a case has."""


def sized(name: str, device: Device) -> dict[str, Any]:
    """A case for a device."""
    case, axis = CASES[name]
    if device.backend == "cpu":
        return case
    key = next(key for key in LENGTHS.get(axis, (axis,)) if key in case)
    size, unit = case["device_memory"].split()
    return case | {key: SCALE // 4 * case[key], "device_memory": f"{SCALE * int(size)} {unit}"}


def full_device(
    monkeypatch: pytest.MonkeyPatch, workload: Workload, entries: int, after: int = 0
) -> list[int]:
    """Let ``softmax`` fail for more rows than ``entries``, from a call on; returns all calls."""
    calls: list[int] = []
    original = workload.argand

    def argand(*given: Any) -> Any:
        one = original(*given)

        def compute(operands: Mapping[str, Any]) -> Any:
            calls.append(operands["x"].shape[0])
            if len(calls) > after and calls[-1] > entries:
                raise MemoryError("out of memory allocating 7 bytes")
            return one.compute(operands)

        return replace(one, compute=compute)

    monkeypatch.setattr(workload, "argand", argand)
    return calls


def run_python(text: str, folder: Path, root: Path, *given: str) -> Any:
    """Run Python with the packages of the repository; an endless wait is an error."""
    return subprocess.run(
        [sys.executable, "-c", text, *given],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": f"{root}:{root / 'kernels'}"},
    )  # fmt: skip
