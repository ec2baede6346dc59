"""Threads that share a stream, a stream's handle or a plan (a GPU)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import DftPlan, GemmPlan, SoftmaxPlan, dft, gemm, softmax

from tests.kernels.gemm.product_cases import normal

_SECONDS = 20.0
"""Beyond it a thread that waits for another one fails."""

pytestmark = pytest.mark.gpu


def at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Results of a call by as many threads, given their numbers."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def together(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call for two threads, of which neither goes on before both have its result."""
    both = threading.Barrier(2, timeout=_SECONDS)

    def found(*arguments: Any) -> Any:
        result = call(*arguments)
        both.wait()
        return result

    return found


def test_threads_that_begin_to_share_a_stream_have_counters_that_stay(
    cp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither has seen those of the other, and later calls of the stream may not write there."""
    from argand.runtime.memory import workspace

    stream = cp.cuda.Stream(non_blocking=True)

    def counters(_: int) -> int:
        with stream:
            return workspace.zeroed_workspace(64)

    with monkeypatch.context() as patch:
        patch.setattr(cp, "zeros", together(cp.zeros))
        made = at_once(2, counters)
    with stream:
        later = [cp.full(workspace._MIN_BYTES, 3, cp.uint8) for _ in range(8)]
        stream.synchronize()
    assert not {x.data.ptr for x in later} & set(made)
    assert counters(0) in made


def test_threads_that_begin_to_share_a_stream_have_one_workspace_for_libraries(
    cp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argand.runtime.memory import workspace

    stream, device = cp.cuda.Stream(non_blocking=True), cp.cuda.Device().id

    def address(_: int) -> int:
        with stream:
            return workspace.library_workspace(1 << 20, stream.ptr, device)

    with monkeypatch.context() as patch:
        patch.setattr(cp.cuda, "alloc", together(cp.cuda.alloc))
        made = at_once(2, address)
    assert made == [address(0)] * 2


@pytest.mark.parametrize("name", ["null", "ptds"])
def test_a_call_of_a_staged_plan_comes_between_no_steps_of_another_threads(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On the null stream, and on those of each thread, which have one handle."""
    given = [cp.asarray(normal(rng, 24, 48)) for _ in range(2)]
    plan, expected = DftPlan(given[0], 0), [dft(x, 0) for x in given]
    stream, first = getattr(cp.cuda.Stream, name), threading.local()
    copied, called = threading.Event(), threading.Event()
    staged = plan._on_gpu
    of_rows = staged._plan.queue

    def held(every: tuple[Any, ...]) -> Any:
        if hasattr(first, "holds"):
            copied.set()
            called.wait(1)  # for as long as the other one waits for the plan
        return of_rows(every)

    def call(number: int) -> Any:
        with stream:
            if number == 0:
                first.holds = True
            else:
                copied.wait(_SECONDS)
            found = plan(given[number])
            if number:
                called.set()
            stream.synchronize()
            return found

    cp.cuda.Device().synchronize()
    monkeypatch.setattr(staged._plan, "queue", held)
    found = at_once(2, call)
    cp.cuda.Device().synchronize()
    assert all(bool((x == y).all()) for x, y in zip(found, expected, strict=True))


_HOW: dict[str, Any] = {"op_b": "C", "precision": "3xfp16"}
PLANS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "packed before": (lambda x: GemmPlan(x, x, **_HOW), lambda x: gemm(x, x, **_HOW)),
    "exact integers": (
        lambda x: GemmPlan(x, x, op_b="C", precision="7xint8"),
        lambda x: gemm(x, x, op_b="C", precision="7xint8"),
    ),
    "columns": (lambda x: DftPlan(x, 0), lambda x: dft(x, 0)),
    "softmax of columns": (
        lambda x: SoftmaxPlan(x, 0, power=True),
        lambda x: softmax(x, 0, power=True),
    ),
}


@pytest.mark.parametrize("own", [True, False], ids=["streams of their own", "one stream"])
@pytest.mark.parametrize("name", PLANS)
def test_threads_share_a_plan(cp: Any, rng: np.random.Generator, name: str, own: bool) -> None:
    make, call = PLANS[name]
    given = [cp.asarray(normal(rng, 512, 512)) for _ in range(8)]
    plan, expected = make(given[0]), [call(x) for x in given]
    cp.cuda.Device().synchronize()

    def worker(number: int) -> bool:
        operands = (given[number],) * min(2, len(plan.names))  # a product has an addend too
        with cp.cuda.Stream(non_blocking=True) if own else cp.cuda.Stream.null as stream:
            found = [plan(*operands) for _ in range(50)]
            stream.synchronize()
            return all(bool((x == expected[number]).all()) for x in found)

    assert all(at_once(len(given), worker))
