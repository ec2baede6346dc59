"""Measurements: how they call, and the ceilings that they are held against."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.device import cpu
from argand.runtime.measuring import ceilings, timing
from argand.runtime.measuring.ceilings import Ceilings, measure_ceilings, operand_formats
from argand.runtime.measuring.timing import Calls, Queued, queued

from workflow.measuring.spread import MIN_SAMPLES
from workflow.measuring.timing import Limits, measure, measure_in_turn, rotations, with_allocations


class Machine:
    """A clock that calls move, each by as many seconds as it takes."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order = ""

    def call(self, name: str, takes: Callable[[], float]) -> Callable[[], None]:
        def made() -> None:
            self.order += name
            self.now += takes()

        return made


def test_long_calls_are_batches_of_one() -> None:
    machine = Machine()
    a, b = (machine.call(name, lambda: 0.02) for name in "ab")
    found = measure_in_turn([[a], [b]], cpu(), clock=lambda: machine.now)
    # Both warm up, then a batch of each in every round, in any order.
    assert {machine.order[at : at + 2] for at in range(0, 42, 2)} == {"ab", "ba"}
    assert len(machine.order) == 42
    assert [timing.iterations for timing in found] == [20, 20]
    assert found[0].time_us_p50 == pytest.approx(20_000)
    assert found[0].settled
    assert found[0].energy_j is None


def test_the_shortest_of_a_batch_counts() -> None:
    """Calls of a millisecond, of which every second one is interrupted for ten."""
    machine = Machine()
    takes = itertools.cycle([0.011, 0.001])
    call = machine.call("a", lambda: next(takes))
    (found,) = measure_in_turn(
        [[call]], cpu(), Limits(warmup=0, seconds=9.0), clock=lambda: machine.now
    )
    assert found.time_us_p80 == pytest.approx(1000)
    assert found.settled
    # The first call does not tell how short one can be; later batches are of ten milliseconds.
    assert len(machine.order) == 1 + 19 * 10


def test_drift_is_in_the_times_of_all() -> None:
    """A clock that slows down by half leaves the ratio of two computations as it is."""
    machine = Machine()
    a = machine.call("a", lambda: 0.02 * (1 + machine.now))
    b = machine.call("b", lambda: 0.04 * (1 + machine.now))
    found = measure_in_turn([[a], [b]], cpu(), clock=lambda: machine.now)
    assert found[1].time_us_p50 / found[0].time_us_p50 == pytest.approx(2, rel=0.05)
    assert not found[0].settled


def test_times_that_do_not_settle_are_repeated_until_the_limit() -> None:
    machine = Machine()
    takes = itertools.cycle([0.01, 0.03])
    noisy = machine.call("a", lambda: next(takes))
    still = machine.call("b", lambda: 0.01)
    found = measure_in_turn(
        [[noisy], [still]], cpu(), Limits(seconds=1.0), clock=lambda: machine.now
    )
    assert [timing.settled for timing in found] == [False, True]
    assert machine.now >= 2.0  # a second for each
    assert found[0].iterations == found[1].iterations > 20
    low, high = found[0].time_us_low, found[0].time_us_high
    assert low is not None
    assert high is not None
    assert low <= found[0].time_us_p50 <= high


def test_the_limit_leaves_time_for_an_interval() -> None:
    machine = Machine()
    call = machine.call("a", lambda: 2.0)
    (found,) = measure_in_turn([[call]], cpu(), clock=lambda: machine.now)
    assert found.iterations == MIN_SAMPLES
    assert found.settled
    (found,) = measure_in_turn([[call]], cpu(), Limits(max_seconds=11.0), clock=lambda: machine.now)
    assert found.iterations == 1
    assert (found.time_us_low, found.settled) == (None, False)


def test_copies_are_used_in_turn() -> None:
    machine = Machine()
    calls = [machine.call(name, lambda: 0.1) for name in "abc"]
    measure_in_turn([calls], cpu(), Limits(warmup=0), clock=lambda: machine.now)
    assert machine.order == "abcabc"


def test_rounds_are_observed() -> None:
    machine, seen = Machine(), []
    call = machine.call("a", lambda: 0.02)
    measure_in_turn([[call]], cpu(), clock=lambda: machine.now, observe=lambda: seen.append(1))
    assert len(seen) == 20


def test_the_time_is_the_calls() -> None:
    timing = measure([lambda: time.sleep(0.02)], cpu(), Limits(repeats=4))
    assert timing.time_us_p20 >= 20_000


def test_a_call_too_long_for_an_interval_is_made_once() -> None:
    timing = measure(
        [lambda: time.sleep(0.05)], cpu(), Limits(seconds=0.01, max_seconds=0.1, warmup=0)
    )
    assert timing.iterations == 1


@pytest.mark.parametrize("key", ["repeats", "seconds", "max_seconds"])
def test_limits_must_be_positive(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} must be positive, got 0"):
        measure([lambda: None], cpu(), Limits(**{key: 0}))


def test_a_sustained_region_comes_before_the_clock() -> None:
    calls: list[float] = []
    timing = measure(
        [lambda: calls.append(time.perf_counter())], cpu(), Limits(sustain=0.05, warmup=0)
    )
    assert timing.iterations >= 20
    assert calls[-1] - calls[0] >= 0.04
    with pytest.raises(ValueError, match="sustain must not be negative, got -1"):
        measure([lambda: None], cpu(), Limits(sustain=-1))


def test_nothing_to_call() -> None:
    with pytest.raises(ValueError, match="calls must hold at least one"):
        measure([], cpu())


def test_rotations_pass_twice_the_cache_within_a_quarter_of_memory() -> None:
    device = replace(cpu(), cache_bytes=100, memory_bytes=4000)
    for size in (1, 7, 50, 99):
        assert rotations(device, size) * size > 200 or rotations(device, size) == 1000 // size
    assert rotations(device, 201) == 1
    assert rotations(device, 900) == 1
    assert rotations(device, 5000) == 1
    assert rotations(device, 0) == 1
    assert rotations(replace(device, memory_bytes=400), 30) == 3


def test_what_a_call_allocates_passes_through_the_cache_too() -> None:
    """Then one turn of all copies exceeds the cache with the fewest of them."""
    device = replace(cpu(), cache_bytes=100, memory_bytes=4000)
    for size, allocated in ((30, 0), (30, 15), (49, 1), (70, 29), (70, 31), (3, 200)):
        found = rotations(device, size, allocated)
        assert found * (size + allocated) > 100
        assert found == 1 or (found - 1) * (size + allocated) <= 100


def test_allocations_are_those_of_the_call() -> None:
    held = np.ones(1 << 20)
    result, allocated = with_allocations(lambda: (held * 2).sum(), cpu())
    assert result == 2 << 20
    assert allocated is not None
    assert held.nbytes <= allocated < 1.1 * held.nbytes
    assert with_allocations(lambda: 3, replace(cpu(), backend="cuda")) == (3, None)


def test_ceilings_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """With copies and products that take no time."""
    monkeypatch.setattr(ceilings, "_CPU_COPY_BYTES", 1 << 20)
    monkeypatch.setattr(ceilings, "_CPU_SIDE", 128)
    found = measure_ceilings(replace(cpu(), cache_bytes=0))
    assert Ceilings.from_json(found.to_json()) == found
    assert found.copy_gbytes_per_s > 0
    assert list(found.tflops) == operand_formats()
    assert found.tflops["tf32"] == found.tflops["fp32"] != found.tflops["fp64"]


def test_the_limit_is_the_larger_of_bytes_and_products() -> None:
    limits = Ceilings("a device", 100.0, {"tf32": 2.0, "fp32": 1.0})
    assert limits.limit_time_s(4e12, 1e9, PRECISIONS["tf32"]) == pytest.approx(2.0)
    assert limits.limit_time_s(4e12, 1e9, PRECISIONS["3xtf32"]) == pytest.approx(6.0)
    assert limits.limit_time_s(0, 50e9, PRECISIONS["fp32"]) == pytest.approx(0.5)


@pytest.mark.parametrize("text", ["[]", '{"device": "x"}', "{"])
def test_other_files_are_no_ceilings(text: str) -> None:
    with pytest.raises(ValueError, match=r"not measured ceilings|Expecting"):
        Ceilings.from_json(text)


@pytest.mark.gpu
def test_on_a_gpu_the_clock_is_the_devices(gpu: Device) -> None:
    import cupy

    x, out = cupy.ones(1 << 28, cupy.uint8), cupy.empty(1 << 28, cupy.uint8)
    timing = measure([lambda: cupy.copyto(out, x)], gpu)
    assert timing.iterations >= 20
    # Reading and writing 2^28 bytes at a rate between 0.1 and 20 TB/s.
    assert 2 * 2**28 / 20e12 < 1e-6 * timing.time_us_p50 < 2 * 2**28 / 0.1e12


@pytest.mark.gpu
def test_energy_of_a_long_region(gpu: Device) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    import cupy

    a = cupy.ones((8192, 8192), cupy.float32)
    timing = measure([lambda: a @ a], gpu, Limits(repeats=200, seconds=2.0))
    if timing.energy_j is not None:  # cards without the counter exist
        watts = timing.energy_j / (1e-6 * timing.time_us_p50)
        assert 20 < watts < 3000
    sustained = measure([lambda: a @ a], gpu, Limits(repeats=3, sustain=0.5))
    assert (sustained.energy_j is None) == (timing.energy_j is None)
    if sustained.energy_j is not None:
        assert 20 < sustained.energy_j / (1e-6 * sustained.time_us_p50) < 3000


@pytest.mark.gpu
def test_a_held_stream_leaves_the_host_out(gpu: Device) -> None:
    import cupy

    x = cupy.ones(1 << 10, cupy.float32)

    def slow_to_make() -> None:
        time.sleep(0.004)
        cupy.add(x, 1, out=x)

    found = measure([slow_to_make], gpu, Limits(repeats=30), held=True)
    assert found.held
    assert found.iterations >= 30
    assert found.time_us_p50 < 1000
    assert found.host_us is not None
    assert found.host_us > 4000
    # Where the device waits for the host, the time between two events is the host's.
    assert not measure([slow_to_make], gpu).held


@pytest.mark.gpu
def test_a_call_that_waits_for_the_device_is_timed_without(gpu: Device) -> None:
    import cupy

    x = cupy.ones(1 << 10, cupy.float32)
    found = measure([lambda: float(x.sum())], gpu, Limits(repeats=5), held=True)
    assert not found.held
    assert found.iterations >= MIN_SAMPLES


def test_no_more_calls_are_held_after_one_that_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would wait half a second for nothing; all are timed again without."""
    asked: list[tuple[int, int, bool]] = []

    def timed(calls: Calls, first: int, count: int, *, held: bool) -> Queued:
        asked.append((first, count, held))
        return Queued([1e-6] * count, [1e-6] * count, held=held and first != 25)

    monkeypatch.setattr(timing, "_timed", timed)
    assert not queued([lambda: None], 90, held=True).held
    assert asked == [(0, 25, True), (25, 25, True), (0, 90, False)]
    found = queued([lambda: None], 20, held=True)
    assert (found.held, len(found.seconds)) == (True, 20)
