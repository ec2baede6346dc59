"""A plan on a GPU starts at addresses alone only where its run is the kept one (no GPU)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kernels.without_device import without_device

FORM = ("complex64", (4,), None, 0, 0)


class Array(SimpleNamespace):
    """In the place of CuPy's."""


class Cache:
    """A call cache that keeps one call, with a run that takes a stream."""

    def __init__(self, kept_call: Any, calls: list[Any]) -> None:
        run = kept_call.StreamRun(
            lambda *places: calls.append(("run", *places)),
            lambda addresses, stream: calls.append(("start", *addresses)),
            lambda x, out: (x, out),
        )
        unknown = kept_call.UNKNOWN
        self.kept = kept_call.KeptCall(run.run, (4,), "complex64", (), unknown, 32, run)

    @contextmanager
    def planning(self) -> Iterator[list[Any]]:
        yield [([FORM, None], self.kept)]

    def look(self, arrays: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        forms = [None if x is None else FORM for x in arrays]
        return forms, [None if x is None else x.place for x in arrays]

    def forbidden(self, *_: Any) -> tuple[Any, ...]:
        return ()

    def result_of(self, call: Any) -> Any:
        raise AssertionError("calls here have `out`")


def array(place: int) -> Any:
    flags = SimpleNamespace(c_contiguous=True)
    return Array(shape=(4,), dtype="complex64", flags=flags, place=place)


@pytest.mark.parametrize("has_other_run", [False, True])
@pytest.mark.parametrize("nbytes", [0, 256])
def test_only_the_kept_run_without_memory_starts_at_addresses(
    monkeypatch: pytest.MonkeyPatch, has_other_run: bool, nbytes: int
) -> None:
    names = (
        "runtime.calls.device_call_plan",
        "runtime.calls.kept_call",
        "runtime.memory.workspace",
    )
    with without_device(*names) as (cupy, device_call_plan, kept_call, workspace):
        monkeypatch.setattr(device_call_plan, "gpu", lambda index: SimpleNamespace(index=index))
        cupy.cuda.alloc = lambda size: SimpleNamespace(ptr=1)
        calls: list[Any] = []

        def call(x: Any) -> Any:
            if nbytes:
                workspace.call_memory(nbytes)
            return array(2)

        def other(*places: Any) -> None:
            calls.append(("other", *places))

        cache = Cache(kept_call, calls)
        run_of = (lambda run: other) if has_other_run else None
        plan = device_call_plan.DeviceCallPlan(cache, call, (array(1),), run_of)
        starts = not has_other_run and not nbytes
        # Plans on tensors read the same field.
        assert (plan.call.stream_run is not None) == starts
        plan.queue((array(5), array(6)))
        name = "start" if starts else "other" if has_other_run else "run"
        assert calls == [(name, 5, 6)]
        assert plan.nbytes == nbytes
