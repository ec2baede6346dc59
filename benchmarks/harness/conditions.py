"""Under which conditions a row was measured: clock, power, and the real rate at the time.

A card that draws its full power lowers its clock, so a rate says little without the rate that the
same card reaches on a plain real product at the same moment.
"""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from argand import Device
from argand.runtime.measuring.ceilings import real_product

from workflow.measuring.nvml import NvmlAbsentError, nvml_device
from workflow.measuring.timing import Limits, measure

_PERIOD_S = 0.01
"""Between two samples: forty in the usual region."""
_REAL_REPEATS = 1 << 30
"""The real product is repeated until its time is over, however often that is."""

Reading = Callable[[], float]


@dataclass(frozen=True)
class Conditions:
    """Medians over a region; None where NVML cannot tell."""

    clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


@dataclass
class Samples:
    """Readings of a region, by name of the column."""

    values: dict[str, list[float]] = field(default_factory=dict)

    @property
    def conditions(self) -> Conditions:
        """The medians of the readings."""
        return Conditions(**{name: statistics.median(v) for name, v in self.values.items() if v})


class Monitor:
    """Samples a device in a thread while a block runs.

    ``notes`` says where each reading comes from, or why it is absent.
    """

    def __init__(self, readings: dict[str, Reading], notes: list[str], failure: type[Exception]):
        self._readings = readings
        self._failure = failure
        self.notes = notes

    @contextmanager
    def watching(self) -> Iterator[Samples]:
        """Yield the samples of the block, complete after it."""
        samples = Samples({name: [] for name in self._readings})
        over = threading.Event()
        thread = threading.Thread(target=self._sample, args=(samples, over), daemon=True)
        thread.start()
        try:
            yield samples
        finally:
            over.set()
            thread.join()

    def _sample(self, samples: Samples, over: threading.Event) -> None:
        while True:
            for name, read in self._readings.items():
                try:
                    samples.values[name].append(read())
                except self._failure:  # a sensor that misses a sample does not end the others
                    continue
            if over.wait(_PERIOD_S):
                return


def monitor(device: Device) -> Monitor:
    """Return the monitor of a device; it reads nothing where there is no NVML, and says so."""
    if device.backend == "cpu":
        return Monitor({}, ["no clock and no power of a CPU"], OSError)
    import cupy

    try:
        return nvml_monitor(*nvml_device(cupy, device))
    except NvmlAbsentError as error:
        return Monitor({}, [f"no clock and no power: {error}"], OSError)


def nvml_monitor(nvml: Any, handle: Any) -> Monitor:
    """Return the readings of a device by NVML (the module ``pynvml``) now."""

    def instant() -> float:
        (value,) = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])
        if value.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(value.nvmlReturn)
        return 1e-3 * float(value.value.uiVal)

    candidates: list[tuple[str, str, Reading]] = [
        ("clock_mhz", "nvmlDeviceGetClockInfo, SM",
         lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
        ("power_w", "NVML_FI_DEV_POWER_INSTANT", instant),
        # From Ampere on the driver averages it over a second, longer than most rows take.
        ("power_w", "nvmlDeviceGetPowerUsage, an average over a second",
         lambda: 1e-3 * float(nvml.nvmlDeviceGetPowerUsage(handle))),
        ("temperature_c", "nvmlDeviceGetTemperature, GPU",
         lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
    ]  # fmt: skip
    readings: dict[str, Reading] = {}
    notes = []
    for name, source, read in candidates:
        if name in readings:
            continue
        try:
            read()
        except (nvml.NVMLError, AttributeError) as error:  # older modules lack newer fields
            notes.append(f"no {name} by {source}: {error}")
        else:
            readings[name] = read
            notes.append(f"{name} by {source}")
    return Monitor(readings, notes, nvml.NVMLError)


class RealRates:
    """cuBLAS's real product of each operand format, measured again whenever it is asked for."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._products: dict[str, tuple[Callable[[], None], float]] = {}

    def tflops(self, operand: str, seconds: float) -> float | None:
        """Return the median rate over ``seconds`` of the product, right now; None on the CPU."""
        if self._device.backend == "cpu":
            return None
        if operand not in self._products:
            self._products[operand] = real_product(operand)
        multiply, flops = self._products[operand]
        timing = measure([multiply], self._device, Limits(repeats=_REAL_REPEATS, seconds=seconds))
        return flops / (1e-6 * timing.time_us_p50) / 1e12
