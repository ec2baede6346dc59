"""Attributes that the run step writes beside the data of a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from workflow.steps.run_results import written
from workflow.storage.datasets import Result

RESULT = Result(
    implementation="argand", precision="fp32", algorithm="", device="", backend="cpu",
    data=np.ones(3),
)  # fmt: skip


class Writer:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def add(self, result: Result) -> None:
        self.calls.append(("add", result.data))

    def amend(self, _: Result, **changes: Any) -> None:
        self.calls.append(("amend", changes))


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
