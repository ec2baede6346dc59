"""A stream is behind where the GPU has not reached a mark after longer than a launch takes."""

from __future__ import annotations

import math

import pytest
from argand.runtime.launch.backlog import BEHIND_SECONDS, HOLDS_SECONDS, Backlog


class Marks:
    """A GPU that reaches each mark ``lag`` seconds after it was recorded."""

    def __init__(self, lag: float) -> None:
        self.lag, self.now, self.asked = lag, 0.0, 0
        self.at = math.inf

    def record(self) -> bool:
        self.at = self.now
        return self.lag < 1

    def is_reached(self) -> bool:
        self.asked += 1
        return self.now >= self.at + self.lag


def _shares_behind(lag: float, interval: float, calls: int = 4000) -> tuple[float, float]:
    """The shares of calls that find the stream behind, and of those that ask for a mark."""
    marks = Marks(lag)
    backlog, found = Backlog(marks), 0
    for number in range(calls):
        marks.now = number * interval
        if marks.now >= backlog.due:
            backlog.look(marks.now)
        found += backlog.behind
    return found / calls, marks.asked / calls


def test_a_gpu_that_waits_for_the_host_is_never_behind() -> None:
    """A launch is done 12 us later, whether calls come each 5 us or each millisecond."""
    for interval in (2e-6, 5e-6, 11e-6, 40e-6, 1e-3):
        assert _shares_behind(12e-6, interval)[0] == 0


def test_a_gpu_with_work_for_some_calls_is_behind() -> None:
    for interval in (2e-6, 5e-6, 11e-6):
        behind, asked = _shares_behind(2e-3, interval)
        assert behind > 0.95
        # A mark and its answer are for all calls of both times.
        assert asked < 1.3 * interval / (BEHIND_SECONDS + HOLDS_SECONDS)


def test_an_answer_holds_until_the_next() -> None:
    marks = Marks(1e-3)
    backlog = Backlog(marks)
    for now, behind in ((0, False), (31e-6, True), (132e-6, True), (2e-3, False)):
        marks.now = now
        assert now >= backlog.due
        backlog.look(now)
        assert backlog.behind == behind
    assert marks.asked == 2


@pytest.mark.parametrize("interval", [4e-6, 5e-6, 8e-6, 17e-6])
def test_calls_after_a_pause_are_behind_as_soon_as_those_before(interval: float) -> None:
    """A mark that was left before the pause does not answer for the calls after it."""
    marks = Marks(1e-3)
    backlog, calls = Backlog(marks), 32
    for start in (3e-3 * burst for burst in range(1, 6)):  # all is done before the next one
        late = 0
        for number in range(calls):
            marks.now = start + number * interval
            if marks.now >= backlog.due:
                backlog.look(marks.now)
            late += not backlog.behind
        assert late * interval < BEHIND_SECONDS + 2 * interval


def test_a_gpu_is_behind_between_calls_that_are_far_apart() -> None:
    for interval in (200e-6, 300e-6):
        assert _shares_behind(2 * interval, interval)[0] > 0.9


def test_without_a_mark_it_is_never_due() -> None:
    assert Backlog(None).due == math.inf
    assert not Backlog(None).behind


def test_a_mark_that_is_refused_is_tried_again_later() -> None:
    marks = Marks(1.0)
    backlog = Backlog(marks)
    for now in (0.0, 1.5):
        backlog.look(now)
        assert backlog.due == now + 1
        assert not backlog.behind
    assert marks.asked == 0
