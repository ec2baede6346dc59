"""Costs and gains of accumulator spills: split products with different spill intervals.

    python -m benchmarks.gemm.spill_intervals --csv h200-gemm-spill-intervals.csv

The fp32 accumulators of promoted sums are spilled to memory at an interval of stages
(`argand.gemm.sm90_plan.SPILL_INTERVAL`), so that errors do not grow with k. The intervals are
measured in turn, each after a rest, so that all have the card as hot as the others. A row is one
interval at one shape and precision: the median time over the rounds, its ratio to that of the
interval that calls have, and the error against fp64 on rows and columns of the result. The exit
status is 1 where a result did not verify.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from argand import PRECISIONS, Device, Precision
from argand.gemm import sm90_plan as wgmma_plan
from argand.gemm import tuned as tuning

from benchmarks.gemm import ours as gemm_ours
from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.measuring import chosen_device
from benchmarks.harness.tables import Table, parser
from benchmarks.peers import Candidate
from workflow.timing import Limits, measure

_SHAPES = (Shape(4096, 4096, 4096), Shape(8192, 8192, 8192))
_INTERVALS = (128, 96, 48, 32)
_SPLIT = [name for name, row in PRECISIONS.items() if row.terms > 1]
_OWN = wgmma_plan.SPILL_INTERVAL


@dataclass(frozen=True)
class SpillRow:
    """One product whose accumulators are spilled every ``interval`` stages.

    Attributes:
        kernels: which ones ran.
        time_us: median over the rounds of their medians.
        ratio: of the time to that with `argand.gemm.sm90_plan.SPILL_INTERVAL`.
        error: ||C^ - C||_F / ||C||_F against fp64, of what is sampled.
    """

    shape: str
    precision: str
    interval: int
    kernels: str
    time_us: float
    ratio: float
    error: float
    verified: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a result did not verify."""
    arguments = _parser().parse_args(argv)
    device = chosen_device("cuda")
    table = Table(arguments.csv)
    intervals = [_OWN, *(interval for interval in arguments.intervals if interval != _OWN)]
    for shape in arguments.shape or _SHAPES:
        a, b = random_operands(shape, arguments.seed)
        check = ProductCheck(shape, a, b, backend=device.backend, seed=arguments.seed)
        for name in arguments.precisions:
            compared = Compared(shape, PRECISIONS[name], device, check, (a, b))
            for row in compared.rows(intervals, arguments):
                table.add(
                    [row],
                    f"{row.shape:16} {row.precision:7} {row.interval:4} stages "
                    f"{row.time_us:9.1f} us {row.ratio:6.3f} error {row.error:.2e} "
                    f"{'' if row.verified else 'WRONG '}{row.kernels}",
                )
    return table.status("verified")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--shape", action="append", type=Shape.parse, help="MxNxK, more than once")
    found.add_argument(
        "--precisions", nargs="+", choices=_SPLIT, default=_SPLIT, help="those of several terms"
    )
    found.add_argument(
        "--intervals",
        nargs="+",
        type=_interval,
        default=list(_INTERVALS),
        help="stages, beside ours",
    )
    found.add_argument("--rounds", type=int, default=3, help="turns of each interval")
    found.add_argument("--repeats", type=int, default=200, help="calls to time in a turn")
    found.add_argument("--seconds", type=float, default=0.45, help="or until this much is spent")
    found.add_argument("--rest", type=float, default=0.25, help="seconds before each turn")
    found.add_argument("--seed", type=int, default=1)
    return found


def _interval(text: str) -> int:
    """Return an interval, no less than the groups of columns: one is spilled a stage."""
    least = 2 * 128 // wgmma_plan.SPILL_COLUMNS  # some tiles spill half as many at once
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"intervals must be {least} stages or more, got {text!r}")
    return int(text)


class Compared:
    """One product, made with each spill interval in turn."""

    def __init__(
        self, shape: Shape, precision: Precision, device: Device, check: ProductCheck,
        operands: Sequence[Any],
    ) -> None:  # fmt: skip
        self._shape, self._precision, self._device = shape, precision, device
        self._check = check
        self._candidate: Candidate = gemm_ours.candidates(device, [precision])[0]
        self._inputs = self._candidate.prepare(*operands)
        self._call = partial(self._candidate.compute, *self._inputs)

    def rows(self, intervals: Sequence[int], how: argparse.Namespace) -> Iterator[SpillRow]:
        """Yield a row for each interval; the others are compared with the first one's time."""
        accuracy = {interval: self._checked(interval) for interval in intervals}
        times: dict[int, list[float]] = {interval: [] for interval in intervals}
        for turn in range(how.rounds):
            first = turn % len(intervals)
            for interval in (*intervals[first:], *intervals[:first]):
                self._take(interval)
                time.sleep(how.rest)
                timing = measure(
                    [self._call],
                    self._device,
                    Limits(repeats=how.repeats, seconds=how.seconds),
                    held=True,
                )
                times[interval].append(timing.time_us_p50)
        self._take(_OWN)
        own = median(times[intervals[0]])
        for interval in intervals:
            found, kernels = accuracy[interval]
            yield SpillRow(
                str(self._shape), self._precision.name, interval, kernels,
                median(times[interval]), median(times[interval]) / own,
                found.rel_frobenius, found.verified,
            )  # fmt: skip

    def _checked(self, interval: int) -> tuple[Any, str]:
        self._take(interval)
        self._inputs[-1].fill(float("nan"))
        found = self._check(self._call(), self._candidate)
        return found, self._candidate.chosen(*self._inputs)

    def _take(self, interval: int) -> None:
        """Have calls prepared again, with accumulators spilled every ``interval`` stages."""
        wgmma_plan.SPILL_INTERVAL = interval
        tuning.TABLE.changed()


if __name__ == "__main__":
    sys.exit(main())
