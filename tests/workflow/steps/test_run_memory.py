"""The memory that the run step of a product takes, of all precisions and peers."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from argand import rounding
from argand.device import cpu
from argand.gemm import cpu as gemm_cpu

from tests.workflow.peak_memory import with_peak
from workflow.preflight.loading import load_study
from workflow.steps import run_results
from workflow.steps.execute import execute
from workflow.steps.staging import stage

LOG = logging.getLogger("test")


def peak_of_run(size: int, folder: Path) -> int:
    """Return the most bytes of a run job at all precisions, of square complex64 matrices."""
    case = {"kind": "gemm", "m": size, "n": size, "k": size, "baselines": ["numpy"]}
    workload = load_study({"device": "cpu", "workloads": {"x": case}}).workload("x")
    staged, run = folder / f"staged-{size}.h5", folder / f"run-{size}.h5"
    stage(workload, [], staged, LOG)
    device = replace(cpu(), cache_bytes=0)  # small data are copied, large ones are not
    return with_peak(lambda: execute(workload, staged, run, device, LOG))[1]


def test_a_run_holds_its_data_once_in_each_type_and_one_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job holds A and B as staged and in fp64, C in fp64, and less than one matrix more.

    A model of two terms has as much: A and B, two terms of each, C and a summand of it.
    """
    # What one call allocates is traced too, which would end the trace of the job.
    monkeypatch.setattr(run_results, "with_allocations", lambda call, _: (call(), 0))
    for module, name in ((gemm_cpu, "_BLOCK_VALUES"), (rounding, "_CHUNK")):
        monkeypatch.setattr(module, name, 1 << 13)  # small beside the data, as of large ones
    peak_of_run(8, tmp_path)  # what a process imports and keeps
    size = 512  # of smaller ones a process holds more to write them to a file
    matrix = np.dtype(np.complex64).itemsize * size**2
    held = (2 + 2 * 2 + 2) * matrix
    assert held < peak_of_run(size, tmp_path) < held + matrix
