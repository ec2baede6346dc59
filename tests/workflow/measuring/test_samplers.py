"""Times of calls behind a held stream, and their energy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest
from argand.runtime.measuring.timing import Queued

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


@pytest.mark.parametrize(("host_us", "joules"), [(90.0, 0.5), (110.0, None)])
def test_a_gpu_that_waits_for_the_host_has_no_energy(
    monkeypatch: pytest.MonkeyPatch, host_us: float, joules: float | None
) -> None:
    sampler = object.__new__(samplers.GpuSampler)
    sampler.seconds, sampler._host, sampler._held = [1e-4] * 9, [1e-6 * host_us] * 9, False
    sampler._calls, sampler._turn, sampler._sustained = [lambda: None], count(), False
    monkeypatch.setattr(samplers.GpuSampler, "_joules", lambda self: 0.5)
    assert sampler.timing().energy_j == joules
