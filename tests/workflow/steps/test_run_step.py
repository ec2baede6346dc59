"""The run step: kernels compiled together, the memory it takes, attributes beside a result."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, DeviceError, rounding
from argand.device import arch_for, cpu
from argand.gemm import cpu as gemm_cpu
from argand.gemm.absmax_source import ABSMAX_KERNEL, absmax_source
from argand.runtime.compile import loading
from argand.runtime.compile.loading import PendingKernel

from tests.workflow.peak_memory import with_peak
from workflow.data import Staged
from workflow.implementation import Implementation
from workflow.preflight.loading import load_study
from workflow.steps import run_results
from workflow.steps.compiling import compile_kernels
from workflow.steps.execute import execute
from workflow.steps.run_results import line_of, summary_of, written
from workflow.steps.staging import stage
from workflow.storage.runs import Result

LOG = logging.getLogger("test")
HOPPER = replace(cpu(), arch=arch_for(90))
"""A GPU's architecture on the host, to which nothing has to be moved."""


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "_begun", {})


def staged() -> Staged:
    found: Any = type("Operands", (), {"operands": {"x": np.ones(3)}})()
    return found


def calling(precision: str, *kernels: tuple[str, str], name: str = "argand") -> Implementation:
    """An implementation that prepares launches of kernels, and then starts the first."""

    def compute(operands: Mapping[str, Any]) -> Any:
        launches = [PendingKernel(source, "sm_90a", kernel) for source, kernel in kernels]
        return [launch.ptr for launch in launches]

    return Implementation(name, PRECISIONS[precision], "", compute, dict)


ONE, OTHER = ((absmax_source(k_major, False), ABSMAX_KERNEL) for k_major in (False, True))


def test_kernels_of_all_precisions_are_compiled(caplog: pytest.LogCaptureFixture) -> None:
    every = [calling("3xfp16", ONE, OTHER), calling("tf32", OTHER)]
    with caplog.at_level(logging.INFO):
        compile_kernels(every, staged, HOPPER, LOG)
        loading._begun.clear()  # as in the next process
        compile_kernels(every, staged, HOPPER, LOG)
    cold, warm = (record.getMessage() for record in caplog.records)
    assert cold.startswith("2 kernels compiled in ")
    assert cold.endswith(" s, 0 from the cache")
    assert warm.startswith("0 kernels compiled in ")
    assert warm.endswith(" s, 2 from the cache")


def refused(operands: Any) -> Any:
    raise DeviceError("it says why in its turn")


@pytest.mark.parametrize(("device", "first"), [
    (cpu(), calling("tf32", ONE)),
    (HOPPER, calling("tf32", ONE, name="a library")),
    (HOPPER, replace(calling("tf32"), compute=refused)),
])  # fmt: skip
def test_what_has_no_kernels_says_nothing(
    device: Device, first: Implementation, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        compile_kernels([first], staged, device, LOG)
    assert caplog.records == []
    assert loading._begun == {}


RESULT = Result(
    implementation="argand", precision="fp32", algorithm="", device="", backend="cpu",
    data=np.ones(3),
)  # fmt: skip


class Writer:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def add(self, result: Result) -> Result:
        self.calls.append(("add", result.data))
        return replace(result, data=None)

    def amend(self, result: Result, **changes: Any) -> Result:
        self.calls.append(("amend", changes))
        return replace(result, **changes)


def test_writing_is_in_the_end_to_end_time() -> None:
    writer = Writer()
    found = written(writer, replace(RESULT, end_to_end_us=7.0))  # type: ignore[arg-type]
    assert found.data is None
    assert found.end_to_end_us is not None
    assert found.end_to_end_us > 7
    assert writer.calls[1:] == [("amend", {"end_to_end_us": found.end_to_end_us})]


def test_what_was_not_timed_has_no_end_to_end_time() -> None:
    writer = Writer()
    assert written(writer, RESULT) == replace(RESULT, data=None)  # type: ignore[arg-type]
    assert [name for name, _ in writer.calls] == ["add"]


@pytest.mark.parametrize(("settled", "known"), [(True, ""), (None, ""), (False, ", unsettled")])
def test_the_log_says_which_times_are_unsettled(settled: bool | None, known: str) -> None:
    """A chunk that is timed once cannot settle, so the log does not call its time unsettled."""
    timed = replace(RESULT, time_us_p50=8.0, iterations=3, settled=settled)
    assert line_of(timed).endswith(f": 8.0 us, median of 3{known}")


def test_models_are_not_the_fastest() -> None:
    fp32, bf16 = (
        replace(RESULT, precision=name, time_us_p50=time)
        for name, time in (("fp32", 2000.0), ("bf16", 1000.0))
    )
    peer = replace(fp32, implementation="numpy")
    assert summary_of([fp32, bf16, peer]) == "2 precisions, 1 baseline; fastest fp32 2.00 ms"
    assert summary_of([bf16]) == "1 precision, 0 baselines; all of ours are models of a GPU's"
    on_gpu = [replace(one, backend="cuda") for one in (fp32, bf16)]
    assert summary_of(on_gpu).endswith("fastest bf16 1.00 ms")


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
