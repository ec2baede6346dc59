"""Calls on the CPU at drawn sizes, ours beside the lines of NumPy that a user would write.

    python -m benchmarks.cpu_calls --cases 40 --seed 20261127 --csv cpu-calls.csv

A third of the cases is one matrix, system or row, the others are up to 1024 of them; of operands
and results together there are up to 2^18 numbers, so that what a call costs beside its arithmetic
shows. Both sides are called in turn, and the lower quartile of each counts: what else runs on the
machine adds to times, and bursts of a faster clock hit calls of either side at random.
With ``--processor-time`` the times are those of the thread on its processor, which other work
changes less: of one core, as no other thread counts. ``--kinds`` names the operations. Results are
compared, not times. fft_backend is scipy.fft.fft with `argand.fft_backend` set beside the same call
without; the lines of solve are numpy.linalg.solve, which tells no backward error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from argand.device import cpu
from argand.runtime.complex_types import UNIT_ROUNDOFF

from benchmarks.cpu_calls.drawn import Drawn, drawn_batch
from benchmarks.cpu_calls.kinds import SIGNAL_KINDS
from benchmarks.cpu_calls.library_kinds import LIBRARY_KINDS
from benchmarks.harness.tables import Table, parser
from workflow.versions import timestamp, versions

KINDS = {**SIGNAL_KINDS, **LIBRARY_KINDS}
_ROUND_SECONDS = 2e-4
"""Shortest time of a measurement: several calls of less."""


@dataclass(frozen=True, kw_only=True)
class CpuCall:
    """Times of both sides (`_in_turn`); ``ratio`` is that of NumPy over ours."""

    operation: str
    shape: str
    batch: int
    dtype: str
    time_us: float
    numpy_us: float
    ratio: float
    verified: bool
    device: str
    seed: int
    versions: str
    timestamp: str


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a result of ours is not that of NumPy."""
    found = parser(__doc__)
    found.add_argument("--cases", type=int, default=40, help="sizes of each operation")
    found.add_argument("--seed", type=int, required=True, help="such as the day's date")
    found.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS])
    found.add_argument("--seconds", type=float, default=0.1, help="for each side of a case")
    found.add_argument("--processor-time", action="store_true", help="of one core")
    arguments = found.parse_args(argv)
    table = Table(arguments.csv)
    for kind in arguments.kinds:
        rng = np.random.default_rng(arguments.seed)
        for number in range(arguments.cases):
            dtype = "complex128" if number % 3 == 2 else "complex64"
            row = _row(kind, KINDS[kind](rng, drawn_batch(rng), dtype), dtype, arguments)
            table.add([row], f"{kind:16} {row.shape:24} {dtype:10} {row.time_us:9.1f} us "
                             f"NumPy {row.numpy_us:9.1f} us {row.ratio:5.2f} "
                             f"{'yes' if row.verified else 'NO'}")  # fmt: skip
    return table.status("verified")


def _row(kind: str, drawn: Drawn, dtype: str, arguments: argparse.Namespace) -> CpuCall:
    ours, lines = drawn.ours(), drawn.lines()
    apart = np.abs(ours - lines).max() / np.abs(lines).max()
    clock = time.thread_time if arguments.processor_time else time.perf_counter
    both = _in_turn([drawn.ours, drawn.lines], arguments.seconds, clock)
    time_us, numpy_us = (1e6 * x for x in both)
    return CpuCall(
        operation=kind, shape=drawn.shape, batch=drawn.batch, dtype=dtype, time_us=time_us,
        numpy_us=numpy_us, ratio=numpy_us / time_us,
        verified=bool(apart <= drawn.share * UNIT_ROUNDOFF[dtype]), device=cpu().name,
        seed=arguments.seed, versions=versions(), timestamp=timestamp(),
    )  # fmt: skip


def _in_turn(
    calls: Sequence[Callable[[], object]], seconds: float, clock: Callable[[], float]
) -> list[float]:
    """Return the lower quartile of the seconds of each call, measured in turn for so long a call.

    First several calls are counted that take `_ROUND_SECONDS` together.
    """
    count, started = _count(calls, clock), clock()
    rounds: list[list[float]] = []
    while clock() - started < seconds * len(calls) or not rounds:
        rounds.append([_seconds(call, count, clock) for call in calls])
    return [float(x) for x in np.percentile(rounds, 25, axis=0)]


def _count(calls: Sequence[Callable[[], object]], clock: Callable[[], float]) -> int:
    """Return how many calls of the faster side make a round; the first ones take longer."""
    count = 1
    for _ in range(3):
        least = min(_seconds(call, count, clock) for call in calls)
        count = max(count, int(_ROUND_SECONDS / least))
    return count


def _seconds(call: Callable[[], object], count: int, clock: Callable[[], float]) -> float:
    before = clock()
    for _ in range(count):
        call()
    return (clock() - before) / count


if __name__ == "__main__":
    sys.exit(main())
