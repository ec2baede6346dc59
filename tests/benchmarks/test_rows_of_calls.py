"""Rows of calls between two events, as sweeps time short calls."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from argand import Device
from argand.device import cpu
from argand.runtime.measuring.timing import Queued

from benchmarks.sweep import in_turn, measuring, rows_of_calls
from benchmarks.sweep.rows_of_calls import queued_rows, row_length


def test_a_row_has_events_at_its_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are of a call; the row before each is not timed, but its calls are made."""
    made: list[int] = []
    asked: list[tuple[int, bool]] = []

    def timed(rows: Any, count: int, *, held: bool) -> Queued:
        asked.append((count, held))
        for _ in range(count):
            rows[0]()
        return Queued([7e-6, 5e-6], [9e-6, 4e-6], held=len(asked) == 1)

    monkeypatch.setattr(rows_of_calls, "queued", timed)
    found = queued_rows([partial(made.append, number) for number in range(3)], 3, 4)
    assert made == [0, 1, 2] * 8
    assert asked == [(2, True), (2, True), (2, False)]  # a call waited in the second
    assert found == Queued([5e-6 / 4] * 3, [1e-6] * 3, held=False)
    assert [row_length(seconds) for seconds in (3e-6, 25e-6, 1e-4, 2e-4, 1.0)] == [32, 10, 2, 1, 1]


@pytest.mark.parametrize("device", [3e-6, 3e-4, 0.03])
def test_the_hosts_time_decides_no_length_of_a_row(
    monkeypatch: pytest.MonkeyPatch, device: float
) -> None:
    """A host that is busy for longer than a stream is held has its time in the first answer."""
    answers = [Queued([0.7], [0.7]), Queued([device], [0.1], held=True)]

    def timed(_: Any, count: int, *, held: bool) -> Queued:
        assert held
        return answers.pop(0) if answers else Queued([device] * count, [0.03] * count, held=True)

    monkeypatch.setattr(in_turn, "queued", timed)
    task, held = in_turn.prepared([lambda: None])
    assert held
    assert task.seconds == device


def test_one_of_the_first_calls_may_wait_for_the_device_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([True, False, True])

    def timed(_: Any, count: int, *, held: bool) -> Queued:
        assert held
        return Queued([2e-6] * count, [9e-6] * count, held=next(answers))

    monkeypatch.setattr(in_turn, "queued", timed)
    task, is_held = in_turn.prepared([lambda: None])
    assert is_held
    assert task.seconds == 2e-6


def test_calls_that_wait_for_the_device_are_held_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bool]] = []

    def timed(_: Any, count: int, *, held: bool = False) -> Queued:
        asked.append((count, held))
        return Queued([1e-4] * count, [9e-5] * count)

    monkeypatch.setattr(in_turn, "queued", timed)
    monkeypatch.setattr(measuring, "queued", timed)
    found = measuring.timed([lambda: None], replace(cpu(), backend="cuda"))
    assert found == Queued([1e-4] * 100, [9e-5] * 100)
    assert asked == [(1, True), (1, True), (100, False)]


@pytest.mark.gpu
def test_rows_are_held_but_where_a_call_waits(gpu: Device) -> None:
    import cupy

    x = cupy.ones(1 << 10, cupy.float32)

    def add() -> None:
        cupy.add(x, 1, out=x)

    add()  # loads its kernel, which waits for the device
    found = queued_rows([add], 4, 25)
    assert found.held
    assert len(found.seconds) == len(found.host_seconds) == 4
    assert float(x[0]) == 2 + 4 * 2 * 25
    waits = queued_rows([lambda: float(x.sum())], 2, 3)
    assert not waits.held
