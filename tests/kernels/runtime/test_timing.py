"""What a measurement does with its calls, and the ceilings it is held against."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.device import cpu
from argand.runtime import ceilings
from argand.runtime.ceilings import Ceilings, measure_ceilings, operand_formats

from workflow.timing import measure, rotations, with_allocations


def test_twenty_repeats_and_a_warm_up() -> None:
    calls: list[int] = []
    timing = measure([lambda: calls.append(0)], cpu(), warmup=2)
    assert timing.iterations == 20
    assert len(calls) == 22
    assert 0 < timing.time_us_p20 <= timing.time_us_p50 <= timing.time_us_p80
    assert timing.energy_j is None


def test_copies_are_used_in_turn() -> None:
    order: list[str] = []
    measure([lambda name=name: order.append(name) for name in "abc"], cpu(), repeats=6, warmup=0)
    assert "".join(order) == "abcabc"


def test_the_time_is_the_calls() -> None:
    timing = measure([lambda: time.sleep(0.02)], cpu(), repeats=4)
    assert timing.time_us_p20 >= 20_000


def test_half_a_second_ends_it_but_not_before_three() -> None:
    assert measure([lambda: time.sleep(0.02)], cpu(), seconds=0.05, repeats=99).iterations == 3
    assert measure([lambda: time.sleep(0.02)], cpu(), seconds=0.1, repeats=99).iterations in (4, 5)


def test_a_call_too_long_for_three_is_made_once() -> None:
    timing = measure([lambda: time.sleep(0.05)], cpu(), seconds=0.01, max_seconds=0.1, warmup=0)
    assert timing.iterations == 1


@pytest.mark.parametrize("key", ["repeats", "seconds", "max_seconds"])
def test_limits_must_be_positive(key: str) -> None:
    with pytest.raises(ValueError, match=f"{key} must be positive, got 0"):
        measure([lambda: None], cpu(), **{key: 0})


def test_a_sustained_region_comes_before_the_clock() -> None:
    calls: list[float] = []
    timing = measure([lambda: calls.append(time.perf_counter())], cpu(), sustain=0.05, warmup=0)
    assert timing.iterations == 20
    assert calls[-20] - calls[0] >= 0.04
    with pytest.raises(ValueError, match="sustain must not be negative, got -1"):
        measure([lambda: None], cpu(), sustain=-1)


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
    with pytest.raises(ValueError, match=r"no measured ceilings|Expecting"):
        Ceilings.from_json(text)


@pytest.mark.gpu
def test_on_a_gpu_the_clock_is_the_devices(gpu: Device) -> None:
    import cupy

    x, out = cupy.ones(1 << 28, cupy.uint8), cupy.empty(1 << 28, cupy.uint8)
    timing = measure([lambda: cupy.copyto(out, x)], gpu)
    assert timing.iterations == 20
    # Reading and writing 2^28 bytes at a rate between 0.1 and 20 TB/s.
    assert 2 * 2**28 / 20e12 < 1e-6 * timing.time_us_p50 < 2 * 2**28 / 0.1e12


@pytest.mark.gpu
def test_energy_of_a_long_region(gpu: Device) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    import cupy

    a = cupy.ones((8192, 8192), cupy.float32)
    timing = measure([lambda: a @ a], gpu, repeats=200, seconds=2.0)
    if timing.energy_j is not None:  # cards without the counter exist
        watts = timing.energy_j / (1e-6 * timing.time_us_p50)
        assert 20 < watts < 3000
    sustained = measure([lambda: a @ a], gpu, repeats=3, sustain=0.5)
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

    found = measure([slow_to_make], gpu, repeats=30, held=True)
    assert found.held
    assert found.iterations == 30  # more than are held at once
    assert found.time_us_p50 < 1000
    assert found.host_us is not None
    assert found.host_us > 4000
    # Where the device waits for the host, the time between two events is the host's.
    assert not measure([slow_to_make], gpu).held


@pytest.mark.gpu
def test_a_call_that_waits_for_the_device_is_timed_without(gpu: Device) -> None:
    import cupy

    x = cupy.ones(1 << 10, cupy.float32)
    found = measure([lambda: float(x.sum())], gpu, repeats=5, held=True)
    assert (found.held, found.iterations) == (False, 5)
