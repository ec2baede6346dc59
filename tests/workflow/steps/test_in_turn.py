"""Implementations that are timed in turn: what they share, and what does not fit together."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.device import cpu

from workflow.implementation import Implementation
from workflow.inputs.operands import cast
from workflow.measuring.samplers import Timing
from workflow.steps import in_turn
from workflow.steps.in_turn import Ready, times_in_turn

LOG = logging.getLogger("test")
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
