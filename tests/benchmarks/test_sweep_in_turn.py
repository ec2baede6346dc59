"""The command of a sweep, and rows of calls between two events, in turn, as it times short ones."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.device import cpu
from argand.runtime.measuring.timing import Calls, Queued

from benchmarks.peers import Candidate
from benchmarks.sweep import __main__ as command
from benchmarks.sweep import in_turn, measuring, rows_of_calls
from benchmarks.sweep.case import Case
from benchmarks.sweep.compiling import with_plans
from benchmarks.sweep.draws import drawn
from benchmarks.sweep.in_turn import Task, timed_in_turn
from benchmarks.sweep.measuring import measured
from benchmarks.sweep.rows_of_calls import queued_rows, row_length


def _slower_and_slower() -> Callable[..., Queued]:
    """Return a clock by which each call takes 0.1 us longer than those of the row before."""
    now = 0.0

    def measure(calls: Calls, rows: int, length: int) -> Queued:
        nonlocal now
        found = []
        for _ in range(rows):
            now += 1e-7
            found.append(statistics.fmean(float(call()) for call in calls[:length]) + now)  # type: ignore[arg-type]
        return Queued(found, [1e-6] * rows, held=True)

    return measure


def test_a_drift_is_in_the_times_of_all() -> None:
    """Equal calls have equal times, though each is slower than the one before."""
    short, long = (Task([partial(float, x)], x) for x in (4e-6, 1e-3))
    found = timed_in_turn([short, long, short], measure=_slower_and_slower())
    first, other, last = (1e6 * statistics.median(one.seconds) for one in found)
    assert first == pytest.approx(last, abs=0.11)
    assert first == pytest.approx(4 + 0.1 * 18, abs=0.2)
    assert other == pytest.approx(1000 + 0.1 * 18, abs=0.2)


def test_long_calls_have_few_rows_that_lie_apart() -> None:
    rows: list[str] = []

    def measure(calls: Calls, _: int, length: int) -> Queued:
        rows.append(f"{calls[0]()}{length}")
        return Queued([1e-5 if calls[0]() == "short" else 0.5], [1.0], held=True)

    tasks = Task([lambda: "short"], 5e-6), Task([lambda: "long"], 0.5)
    found = timed_in_turn(tasks, measure=measure)
    assert [len(one.seconds) for one in found] == [12, 5]
    assert set(rows) == {"short32", "long1"}
    places = [place for place, row in enumerate(rows) if row == "long1"]
    assert min(b - a for a, b in pairwise(places)) > 1
    assert places[-1] - places[0] > len(rows) // 2


def test_rows_that_waited_for_the_host_do_not_count_beside_others() -> None:
    """Each is taken once more: of a call that waits now and then some are held."""
    held = iter([False, True, *[False, False] * 10, True])
    made: list[bool] = []

    def measure(*_: Any) -> Queued:
        made.append(next(held))
        return Queued([2e-6 if made[-1] else 2e-5], [1e-5], held=made[-1])

    task = Task([lambda: None], 2e-6)
    (found,) = timed_in_turn([task], measure=measure)
    assert found == Queued([2e-6] * 2, [1e-5] * 2, held=True)
    assert len(made) == 2 * 12 - 1
    (waiting,) = timed_in_turn([task], measure=lambda *_: Queued([2e-5], [1e-5]))
    assert waiting == Queued([2e-5] * 12, [1e-5] * 12)


def test_rows_come_to_all_sets_and_each_context_is_prepared() -> None:
    made: list[str] = []
    calls = [partial(made.append, x) for x in "abc"]

    @contextmanager
    def taking() -> Iterator[None]:
        made.append("(")
        yield
        made.append(")")

    def measure(some: Calls, _: int, length: int) -> Queued:
        made.append("|")
        for call in some[:length]:
            call()
        return Queued([1.0], [1.0], held=True)

    timed_in_turn([Task(calls, 125e-6)], measure=measure)  # rows of two
    assert "".join(made).startswith("|ab|ca|bc|ab")
    made.clear()
    timed_in_turn([Task(calls, 125e-6, taking)], measure=measure)
    assert "".join(made).startswith("(abcabcabc|ab)(cabcabcab|ca)(")


class _Million(Case):
    """A case that takes a million operations and bytes."""

    operation, shape, kind = "gemm", "", ""
    flops = bytes_moved = 1e6
    operands = ours = peers = assessment = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("memory", "together", "given"),
    [(1 << 40, True, False), (1 << 40, True, True), (10_000_000, False, True)],
)
def test_candidates_are_timed_in_turn_where_all_have_room(
    monkeypatch: pytest.MonkeyPatch, memory: int, together: bool, given: bool
) -> None:
    """A copy is among them, and of given sizes a real product; what breaks says why.

    What waits for the device is timed alone.
    """
    in_turn: list[int] = []
    alone: list[int] = []

    def made(calls: Calls, count: int = 1, **_: Any) -> Queued:
        found = [float(calls[0]() or 1e-3) for _ in range(count)]  # type: ignore[arg-type]
        alone.append(count)
        return Queued(found, found)

    def turn(tasks: Sequence[Task]) -> list[Queued]:
        in_turn.append(len(tasks))
        return [Queued([task.seconds], [1e-6], held=True) for task in tasks]

    def ready(calls: Calls) -> tuple[Task, bool]:
        seconds = float(calls[0]() or 1e-3)  # type: ignore[arg-type]
        return Task(calls, seconds), seconds != 5e-3

    monkeypatch.setattr(measuring, "queued", made)
    monkeypatch.setattr(measuring, "timed_in_turn", turn)
    monkeypatch.setattr(measuring, "prepared", ready)
    monkeypatch.setattr(measuring, "array_module", lambda _: np)
    monkeypatch.setattr(measuring, "real_product", lambda name: (lambda: 4e-3, 8e6))
    case = _Million()
    case.given = given

    def one(name: str, compute: Callable[[Any], Any]) -> Candidate:
        return Candidate(name, PRECISIONS["tf32"], "", lambda x: (x,), compute)

    candidates = [one("a", lambda _: 2e-3), one("b", lambda _: 1 / 0), one("c", lambda _: 5e-3)]
    device = Device("cuda", "", memory_bytes=memory)
    found = measured(case, candidates, (np.ones(3),), lambda *_: 0, device, 1)
    a, b, c = (x.row for x in found)
    assert (a.time_us, a.of_copy, a.tflops) == pytest.approx((2e3, 0.5, 5e-4))
    assert (c.time_us, c.of_copy) == pytest.approx((5e3, 0.2))
    assert a.of_real == (pytest.approx(0.25) if together and given else None)
    assert b.time_us is None
    assert "ZeroDivisionError" in b.reason
    assert [x.accuracy for x in found] == [0, None, 0]
    assert in_turn == ([2 + given] if together else [1, 1])
    assert alone == [5]


def test_a_run_that_ends_early_keeps_the_rows_of_cases_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cases = tmp_path / "rows.csv", drawn("small", 3, 8)

    def ended(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cases[2], "operands", ended)
    monkeypatch.setattr(command, "drawn", lambda *_: cases)
    with pytest.raises(KeyboardInterrupt):
        command.main(["small", "--seed", "8", "--device", "cpu", "--csv", str(path)])
    with path.open() as file:
        assert {row["shape"] for row in csv.DictReader(file)} == {case.shape for case in cases[:2]}


@pytest.mark.parametrize(
    "given", [["--plans", "1"], ["--only-plans"], ["--cases", "0"], ["--seed", "-1"]]
)
def test_what_no_sweep_of_a_cpu_can_have(given: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        command.main(["small", "--seed", "8", "--device", "cpu", *given])
    assert given[0] in capsys.readouterr().err.splitlines()[-1]


def test_no_case_spends_its_turn_on_exact_products() -> None:
    ours = [case.ours(Device("cpu", "")) for case in drawn("gemm", 40, 1)]
    places = [with_plans(number, some, 1) for number, some in enumerate(ours)]
    names = [
        some[at].precision.name for some, at in zip(ours, places, strict=True) if at is not None
    ]
    assert len(names) == 40
    assert set(names) == {"tf32", "3xtf32", "3xfp16", "fp16", "bf16"}
    assert with_plans(1, ours[0], 2) is None
    assert with_plans(0, ours[0], 0) is None
    exact = [one for one in ours[0] if one.precision.moduli]
    assert with_plans(0, exact, 1) is None


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
