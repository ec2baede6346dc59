"""The run step: kernels compiled together, memory, attributes, implementations timed in turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
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
from workflow.inputs.operands import cast
from workflow.measuring.samplers import Timing
from workflow.preflight.loading import load_study
from workflow.steps import in_turn, run_results
from workflow.steps.compiling import compile_kernels
from workflow.steps.execute import execute
from workflow.steps.in_turn import Ready, times_in_turn
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
    lost = [replace(one, time_us_p50=None) for one in (replace(fp32, precision="fp64"), peer)]
    assert summary_of([fp32, *lost, peer]).startswith("1 precision, 1 baseline, 2 could not be ti")
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


X = np.arange(1000, dtype=np.complex64)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[list[list[Callable[[], Any]]]]:
    """The calls of every group that is timed, in place of times."""
    seen: list[list[list[Callable[[], Any]]]] = []

    def measure(tasks: Any, device: Device, **_: Any) -> list[Timing]:
        seen.append(tasks)
        return [Timing(1.0, 1.0 * len(seen), 1.0, place) for place, _ in enumerate(tasks)]

    monkeypatch.setattr(in_turn, "measure_in_turn", measure)
    return seen


def ready(name: str, precision: str) -> Ready:
    row = PRECISIONS[precision]
    one = Implementation(
        name, row, "", lambda given: given["x"], lambda given: cast(dict(given), row)
    )
    return Ready(one, 0)


FOUR = [ready("argand", "fp64"), ready("argand", "fp32"), ready("b", "fp64"), ready("b", "fp32")]


def test_equal_operands_are_in_memory_once(groups: list[Any]) -> None:
    """Not those as they were staged only: two casts to fp64 are equal too."""
    device = replace(cpu(), cache_bytes=X.nbytes + 1)
    found = times_in_turn(FOUR, {"x": X}, device, LOG)
    assert [timing.iterations for timing, _ in found] == [0, 1, 2, 3]
    ((ours64, ours32, other64, other32),) = groups
    assert ours32[0]() is X is other32[0]()
    assert ours64[0]() is other64[0]()
    assert ours64[0]().dtype == np.complex128
    assert [len(calls) for calls in (ours32, ours64)] == [2, 1]  # copies exceed the cache
    assert ours32[1]() is other32[1]() is not X


def test_models_of_a_gpu_have_no_copies(groups: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their times decide nothing, so a cache may hold their operands."""
    measure = in_turn.measure_in_turn
    monkeypatch.setattr(in_turn, "measure_coarsely", lambda tasks, _: measure(tasks, cpu()))
    both = [ready("argand", "fp32"), ready("argand", "tf32")]
    times_in_turn(both, {"x": X}, replace(cpu(), cache_bytes=X.nbytes + 1), LOG)
    assert [len(calls) for (calls,) in groups] == [2, 1]


def test_what_one_function_makes_is_made_once(groups: list[Any]) -> None:
    """Two casts of large operands would be in memory beside each other."""
    made: list[str] = []

    def widened(given: Any, to: str) -> dict[str, Any]:
        made.append(to)
        return {"x": given["x"].astype(to)}

    def same(name: str, precision: str) -> Ready:
        row = PRECISIONS[precision]
        return Ready(
            Implementation(
                name, row, "", lambda given: given["x"], partial(widened, to=row.output)
            ), 0,
        )  # fmt: skip

    ready = [same("argand", "fp64"), same("argand", "fp32"), same("b", "fp64")]
    times_in_turn(ready, {"x": X}, replace(cpu(), cache_bytes=0), LOG)
    assert made == ["complex128", "complex64"]
    ((one, narrow, other),) = groups
    assert one[0]() is other[0]()
    assert narrow[0]().dtype == np.complex64


@pytest.mark.parametrize(
    "other",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.where(np.arange(x.size).reshape(x.shape) == x.size - 1, -x, x),
    ],
    ids=["in another layout", "with another bit"],
)
def test_what_differs_is_not_shared(groups: list[Any], other: Callable[[Any], Any]) -> None:
    x = np.zeros((30, 1000))  # where -0 is 0
    row = PRECISIONS["fp64"]
    ready = [
        Ready(Implementation(name, row, "", lambda given: given["x"], prepare), 0)
        for name, prepare in (("a", dict), ("b", lambda given: {"x": other(given["x"])}))
    ]
    times_in_turn(ready, {"x": x}, replace(cpu(), cache_bytes=0), LOG)
    ((first, second),) = groups
    assert first[0]() is x
    assert second[0]() is not x
    assert second[0]().tobytes("A") == other(x).tobytes("A")


def test_what_does_not_fit_together_is_timed_by_type(groups: list[Any]) -> None:
    size = 3 * X.nbytes
    device = replace(cpu(), cache_bytes=0, memory_bytes=3 * size - 1)
    found = times_in_turn(FOUR, {"x": X}, device, LOG)
    assert [[calls[0]().dtype.name for calls in group] for group in groups] == [
        ["complex128", "complex128"], ["complex64", "complex64"],
    ]  # fmt: skip
    assert [(t.time_us_p50, t.iterations) for t, _ in found] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    groups.clear()
    found = times_in_turn(FOUR, {"x": X}, replace(device, memory_bytes=X.nbytes), LOG)
    assert [t.time_us_p50 for t, _ in found] == [1, 3, 2, 4]  # one by one


def test_nothing_to_time() -> None:
    assert times_in_turn([], {"x": X}, cpu(), LOG) == []
