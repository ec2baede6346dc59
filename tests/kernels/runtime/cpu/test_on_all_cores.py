"""Work on all cores: each item once, also within such work, after errors and after fork."""

from __future__ import annotations

import threading

import pytest
from argand.runtime.cpu import threads
from argand.runtime.cpu.threads import on_all_cores

from tests.kernels.runtime.cpu.forked import holds_in_a_child


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 4)


def doubled(count: int) -> list[int]:
    found: list[int] = []
    on_all_cores(lambda item: found.append(2 * item), range(count))
    return sorted(found)


def test_each_item_is_worked_on_once() -> None:
    for count in (0, 1, 3, 100):
        assert doubled(count) == [2 * item for item in range(count)]


def test_several_threads_work_at_a_time() -> None:
    barrier = threading.Barrier(4, timeout=60)
    on_all_cores(lambda item: barrier.wait(), range(4))


def test_work_within_work_ends() -> None:
    found: list[list[int]] = []
    on_all_cores(lambda item: found.append(doubled(50)), range(20))
    assert found == [doubled(50)] * 20


def test_an_error_is_raised_after_all() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError("item 1")
        done.append(item)

    with pytest.raises(ValueError, match="item 1"):
        on_all_cores(work, range(30))
    assert sorted(done) == [0, *range(2, 30)]


def test_a_child_of_fork_has_threads_of_its_own() -> None:
    assert doubled(10) == doubled(10)
    assert holds_in_a_child(lambda: doubled(10) == list(range(0, 20, 2)))
