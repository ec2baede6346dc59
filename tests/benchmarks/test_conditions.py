"""Readings beside a row: clock, power and temperature, from a stand-in for NVML."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from argand import Device
from argand.device import cpu

from benchmarks.harness import conditions
from benchmarks.harness.conditions import Conditions, RealRates, monitor, nvml_monitor
from workflow.measuring.nvml import NvmlAbsentError
from workflow.measuring.timing import Limits


class NVMLError(Exception):
    """A stand-in for pynvml's error."""


class Nvml:
    """As much of pynvml as is used; a board whose clock falls with each reading."""

    NVML_SUCCESS, NVML_CLOCK_SM, NVML_TEMPERATURE_GPU, NVML_FI_DEV_POWER_INSTANT = 0, 1, 0, 186
    NVMLError = NVMLError

    def __init__(self, instant: int = 0) -> None:
        self.instant = instant
        self.read = 0

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:  # noqa: N802
        assert (handle, which) == ("the board", 1)
        self.read += 1
        return 1980 - self.read

    def nvmlDeviceGetFieldValues(self, handle: str, fields: list[int]) -> list[Any]:  # noqa: N802
        assert fields == [186]
        return [SimpleNamespace(nvmlReturn=self.instant, value=SimpleNamespace(uiVal=700_500))]

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 400_000

    def nvmlDeviceGetTemperature(self, handle: str, which: int) -> int:  # noqa: N802
        raise NVMLError("Not Supported")


def test_medians_of_a_region() -> None:
    nvml = Nvml()
    watching = nvml_monitor(nvml, "the board")
    with watching.watching() as samples:
        clocks = samples.values["clock_mhz"]
        while len(clocks) < 3:
            time.sleep(0.01)
    found = samples.conditions
    assert found.clock_mhz == pytest.approx((clocks[0] + clocks[-1]) / 2)  # it falls evenly
    assert found.power_w == 700.5
    assert found.temperature_c is None
    assert "no temperature_c by nvmlDeviceGetTemperature, GPU: Not Supported" in watching.notes
    assert "power_w by NVML_FI_DEV_POWER_INSTANT" in watching.notes


def test_a_driver_without_instantaneous_power_gives_the_average_and_says_so() -> None:
    watching = nvml_monitor(Nvml(instant=3), "the board")
    with watching.watching() as samples:
        pass
    assert samples.conditions.power_w == 400
    assert "power_w by nvmlDeviceGetPowerUsage, an average over a second" in watching.notes


def test_a_machine_without_nvml_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(cupy: object, device: Device) -> None:
        raise NvmlAbsentError("pynvml (nvidia-ml-py) is not installed")

    monkeypatch.setattr(conditions, "nvml_device", none)
    monkeypatch.setitem(__import__("sys").modules, "cupy", SimpleNamespace())
    watching = monitor(Device("cuda", "a card"))
    with watching.watching() as samples:
        pass
    assert samples.conditions == Conditions()
    assert watching.notes == ["no clock and no power: pynvml (nvidia-ml-py) is not installed"]


def test_a_cpu_has_neither() -> None:
    with monitor(cpu()).watching() as samples:
        pass
    assert samples.conditions == Conditions()
    assert RealRates(cpu()).tflops("tf32", 0.1) is None


def test_the_real_rate_is_measured_again_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, measured = [], []

    def product(name: str) -> tuple[Any, float]:
        made.append(name)
        return (lambda: None), 1e12

    def measure(calls: Any, device: Device, limits: Limits) -> Any:
        measured.append(limits.seconds)
        return SimpleNamespace(time_us_p50=2500.0)

    monkeypatch.setattr(conditions, "real_product", product)
    monkeypatch.setattr(conditions, "measure", measure)
    rates = RealRates(Device("cuda", "a card"))
    assert [rates.tflops("tf32", seconds) for seconds in (0.4, 0.5)] == [400.0, 400.0]
    assert (made, measured) == (["tf32"], [0.4, 0.5])


@pytest.mark.gpu
def test_of_a_real_card(gpu: Device) -> None:
    rate = RealRates(gpu).tflops("fp16", 0.3)
    assert rate is not None
    assert rate > 1
    with monitor(gpu).watching() as samples:
        time.sleep(0.05)
    for value in vars(samples.conditions).values():
        assert value is None or value > 0
