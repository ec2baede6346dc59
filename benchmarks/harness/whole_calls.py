"""Benchmarks of whole calls of one public function: their arguments, clock and shared columns."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from argand.runtime.kernel_digest import kernel_digest

from benchmarks.harness.conditions import monitor
from benchmarks.harness.measuring import array_module, chosen_device, release
from workflow.timing import Limits, measure
from workflow.versions import timestamp, versions


@dataclass(frozen=True, kw_only=True)
class WholeCall:
    """The columns of every row, beside those of its operation.

    Attributes:
        device, backend: where the call ran.
        time_us_p20, time_us_p50, time_us_p80: over ``iterations`` calls.
        clock_mhz, power_w, temperature_c: medians meanwhile; None where NVML cannot tell.
        seed: of the operands.
        kernel_digest: of ours; empty for a peer.
    """

    device: str
    backend: str
    time_us_p20: float
    time_us_p50: float
    time_us_p80: float
    iterations: int
    clock_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    seed: int
    kernel_digest: str
    versions: str
    timestamp: str


def add_arguments(
    parser: argparse.ArgumentParser, *, seconds: float, rest: float, peers: bool = True
) -> None:
    """Add the arguments of the clock, with these defaults, of the device, the seed and peers."""
    if peers:
        parser.add_argument("--no-peer", action="store_true", help="ours alone")
    parser.add_argument("--repeats", type=int, default=5, help="calls to time")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="or until this much is spent"
    )
    parser.add_argument(
        "--sustain", type=float, default=0.0, help="seconds of calls before the clock starts"
    )
    parser.add_argument("--rest", type=float, default=rest, help="seconds before each on a GPU")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--seed", type=int, default=1)


class Clock:
    """The device of a benchmark, and the clock of its calls.

    Args:
        arguments: those of `add_arguments`.
        operation: of argand, whose code's digest stands in the rows of ours.
    """

    def __init__(self, arguments: argparse.Namespace, operation: str) -> None:
        #: Where calls run.
        self.device = chosen_device(arguments.device)
        self._arguments, self._operation = arguments, operation
        self._watch = monitor(self.device)

    def timed(self, call: Callable[[], object], *, ours: bool) -> dict[str, Any]:
        """Return the columns of `WholeCall` for a call that has run before, and free memory.

        A GPU begins when calls are queued, unless they wait for it themselves: their time is its
        own.
        """
        given, device = self._arguments, self.device
        if device.backend == "cuda":
            time.sleep(given.rest)
        limits = Limits(
            repeats=given.repeats, seconds=given.seconds, sustain=given.sustain,
            max_seconds=given.seconds,
        )  # fmt: skip
        with self._watch.watching() as samples:
            timing = measure([call], device, limits, held=True)
        conditions = samples.conditions
        release(device)
        return {
            "device": device.name, "backend": device.backend,
            "time_us_p20": timing.time_us_p20, "time_us_p50": timing.time_us_p50,
            "time_us_p80": timing.time_us_p80, "iterations": timing.iterations,
            "clock_mhz": conditions.clock_mhz, "power_w": conditions.power_w,
            "temperature_c": conditions.temperature_c, "seed": given.seed,
            "kernel_digest": kernel_digest(self._operation) if ours else "",
            "versions": versions(), "timestamp": timestamp(),
        }  # fmt: skip

    def copy_rate(self, count: int) -> float:
        """Return the bytes a second that a copy of so many float32 reads and writes."""
        arrays = array_module(self.device)
        source = arrays.ones(count, np.float32)
        columns = self.timed(partial(arrays.copyto, arrays.empty_like(source), source), ours=False)
        return 2e6 * float(source.nbytes) / float(columns["time_us_p50"])
