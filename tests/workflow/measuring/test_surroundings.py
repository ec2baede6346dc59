"""Readings of a machine while something is timed, from files and readings of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from argand.device import cpu

from workflow.measuring.surroundings import busy_seconds, load_of, read_gpu_clock, watching


def test_busy_are_all_but_idle_and_waiting_cores_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2})
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu 9999 0 0 0 0 0 0 0 0 0\n"
        "cpu0 100 20 30 5000 400 5 6 7 50 50\n"
        "cpu1 7777 0 0 0 0 0 0 0 0 0\n"
        "cpu2 1 0 0 0 0 0 0 0 0 0\n"
        "intr 5\n"
    )
    assert busy_seconds(stat) == pytest.approx(169 / os.sysconf("SC_CLK_TCK"))
    assert busy_seconds(tmp_path / "none") is None
    stat.write_text("cpu0 0 0 0 0 0 0 0 0 0 0\n")  # a sandbox that counts nothing
    assert busy_seconds(stat) is None


def test_the_load_is_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_of(10.0, 16.0, 4.0, 2.0) == 1.0
    assert load_of(10.0, 11.0, 4.0, 2.0) == 0.0  # ticks are coarser than our own clock
    assert load_of(10.0, 16.0, 4.0, 0.0) is None
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.0, 0.0))
    assert load_of(None, None, 4.0, 2.0) == 1.0

    def no_average() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", no_average)
    assert load_of(None, None, 4.0, 2.0) is None


def test_a_region_is_watched() -> None:
    with watching(cpu()) as watch:
        watch.sample()
    found = watch.found
    assert found.load is None or found.load >= 0
    assert found.clock_mhz is None or found.clock_mhz > 0
    assert found.throttling == ""


class Nvml:
    """A stand-in for the part of pynvml that is read."""

    NVML_CLOCK_SM = 1

    class NVMLError(Exception):
        """An error of NVML's."""

    def __init__(self, reasons: int | None) -> None:
        self.reasons = reasons

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:  # noqa: N802
        return 1980

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int:  # noqa: N802
        if self.reasons is None:
            raise self.NVMLError
        return self.reasons


def test_what_holds_a_clock_down_is_said_in_words() -> None:
    assert read_gpu_clock(Nvml(0x1), None) == (1980.0, ())  # idle is not a reason
    assert read_gpu_clock(Nvml(0x24), None) == (1980.0, ("power cap", "thermal, by software"))
    assert read_gpu_clock(Nvml(None), None) == (1980.0, ())
