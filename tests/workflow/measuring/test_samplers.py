"""Times of calls behind a held stream, where one of them waits for the device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from argand.runtime.timing import Queued

from workflow.measuring import samplers


@pytest.mark.parametrize(("waits", "tries"), [([], 1), (["once"], 2), (["once", "again"], 2)])
def test_a_call_that_waits_is_timed_once_more(
    monkeypatch: pytest.MonkeyPatch, waits: Sequence[str], tries: int
) -> None:
    made: list[bool] = []

    def queued(calls: Sequence[object], count: int, *, held: bool) -> Queued:
        made.append(held)
        return Queued([1.0] * count, [0.1] * count, held and len(made) > len(waits))

    monkeypatch.setattr(samplers, "queued", queued)
    found = samplers.queued_times([lambda: None], held=True)
    assert found.held == (len(waits) < 2)
    assert made == [True] * tries
    made.clear()
    assert not samplers.queued_times([lambda: None], held=False).held
    assert made == [False]
