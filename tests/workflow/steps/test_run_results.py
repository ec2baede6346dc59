"""Attributes that the run step writes beside the data of a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workflow.steps.run_results import line_of, summary_of, written
from workflow.storage.runs import Result

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
