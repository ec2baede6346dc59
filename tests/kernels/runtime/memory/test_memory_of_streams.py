"""Which calls share memory by stream and thread, on a library that counts what it allocates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kernels.without_device import without_device

LATER, NEVER = 0.1, 20.0
"""Seconds that a call is given to go on where it must wait, and where it must not."""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    addresses = count(1000)
    with without_device("runtime.memory.workspace") as (cupy, found):
        cupy.zeros = lambda size, _: SimpleNamespace(
            data=SimpleNamespace(ptr=next(addresses)), nbytes=size
        )
        cupy.cuda.alloc = lambda _: SimpleNamespace(ptr=next(addresses))
        monkeypatch.setattr(found, "capture_of", lambda _: None)
        yield found


KINDS: dict[str, Callable[[Any, int, int], int]] = {
    "counters": lambda module, stream, device: module.zeroed_workspace(64, stream, device),
    "a library's": lambda module, stream, device: module.library_workspace(64, stream, device),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_stream_of_each_device_has_its_own(module: Any, kind: str) -> None:
    """Kernels of one stream run one after another, those of two do not."""
    places = [(stream, device) for device in (0, 1) for stream in (0, 1, module.PER_THREAD, 77)]
    found = [KINDS[kind](module, *place) for place in places]
    assert len(set(found)) == len(places)
    assert [KINDS[kind](module, *place) for place in places] == found


@pytest.mark.parametrize("kind", KINDS)
def test_threads_share_that_of_a_stream_but_for_the_stream_of_each(module: Any, kind: str) -> None:
    for stream, shared in ((77, True), (module.PER_THREAD, False)):
        own = KINDS[kind](module, stream, 0)
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(KINDS[kind], module, stream, 0).result()
        assert (other == own) == shared


def test_calls_of_a_plan_on_one_stream_do_not_share_their_memory_at_once(module: Any) -> None:
    """Threads may share a stream: no launch of one call comes between those of another."""
    memory, steps, meanwhile = module.PlanMemory(), [], list[Future[Any]]()

    def call(name: str) -> Any:
        block = module.call_memory(8)
        steps.append(f"{name} begins")
        if name == "first":
            meanwhile.extend(
                pool.submit(memory.run, call, (other,), stream)
                for other, stream in (("second", 1), ("apart", 2))
            )
            wait(meanwhile[1:], NEVER)
            wait(meanwhile[:1], LATER)
        steps.append(f"{name} ends")
        return block

    with ThreadPoolExecutor(2) as pool:
        first = memory.run(call, ("first",), 1)
    second, apart = (one.result() for one in meanwhile)
    names = ("first begins", "apart begins", "apart ends", "first ends", "second begins")
    assert steps == [*names, "second ends"]
    assert second is first
    assert apart is not first
    assert memory.nbytes == 8
