"""Benchmarks of whole calls of one public function: their arguments, clock and shared columns."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argand import Device
from argand.runtime.kernel_digest import kernel_digest

from benchmarks.harness.conditions import Monitor
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


def add_arguments(parser: argparse.ArgumentParser, *, seconds: float, rest: float) -> None:
    """Add the arguments of the clock, with these defaults, of the device and of the seed."""
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


def timed(
    call: Callable[[], object], arguments: argparse.Namespace, device: Device, watch: Monitor,
    ours: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the columns of `WholeCall` for a call that has run before.

    A GPU begins when calls are queued, unless they wait for it themselves: their time is its own.

    Args:
        call: what is timed.
        arguments: those of `add_arguments`.
        device: where it runs.
        watch: the monitor of the device.
        ours: the operation of argand that is called; None for a peer.
    """
    if device.backend == "cuda":
        time.sleep(arguments.rest)
    with watch.watching() as samples:
        timing = measure(
            [call],
            device,
            Limits(
                repeats=arguments.repeats, seconds=arguments.seconds, sustain=arguments.sustain,
                max_seconds=arguments.seconds,
            ),
            held=True,
        )  # fmt: skip
    conditions = samples.conditions
    return {
        "device": device.name, "backend": device.backend,
        "time_us_p20": timing.time_us_p20, "time_us_p50": timing.time_us_p50,
        "time_us_p80": timing.time_us_p80, "iterations": timing.iterations,
        "clock_mhz": conditions.clock_mhz, "power_w": conditions.power_w,
        "temperature_c": conditions.temperature_c, "seed": arguments.seed,
        "kernel_digest": "" if ours is None else kernel_digest(ours),
        "versions": versions(), "timestamp": timestamp(),
    }  # fmt: skip
