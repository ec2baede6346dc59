"""What segments of totals cost and spare: split products whose totals move more or less often.

    python -m benchmarks.gemm.segments --csv h200-gemm-segments.csv

Totals of promoted sums move to memory after so many stages (`argand.gemm.sm90_plan.SEGMENT`), so
that errors do not grow with k. The segments that are compared take turns, each after a rest, so
that all have the card as hot as the others. A row is one segment at one shape and precision: the
median time over the rounds, its ratio to that of the segment that calls have, and the error against
fp64 on rows and columns of the result. The exit status is 1 where a result did not verify.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
from workflow.timing import measure

_SHAPES = (Shape(4096, 4096, 4096), Shape(8192, 8192, 8192))
_SEGMENTS = (128, 96, 48, 32)
_SPLIT = [name for name, row in PRECISIONS.items() if row.terms > 1]
_OWN = wgmma_plan.SEGMENT


@dataclass(frozen=True)
class SegmentRow:
    """One product with totals that move after ``segment`` stages.

    Attributes:
        kernels: which ones ran.
        time_us: median over the rounds of their medians.
        ratio: of the time to that with `argand.gemm.sm90_plan.SEGMENT`.
        error: ||C^ - C||_F / ||C||_F against fp64, of what is sampled.
    """

    shape: str
    precision: str
    segment: int
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
    segments = [_OWN, *(segment for segment in arguments.segments if segment != _OWN)]
    for shape in arguments.shape or _SHAPES:
        a, b = random_operands(shape, arguments.seed)
        check = ProductCheck(shape, a, b, backend=device.backend, seed=arguments.seed)
        for name in arguments.precisions:
            compared = Compared(shape, PRECISIONS[name], device, check, (a, b))
            for row in compared.rows(segments, arguments):
                print(
                    f"{row.shape:16} {row.precision:7} {row.segment:4} stages "
                    f"{row.time_us:9.1f} us {row.ratio:6.3f} error {row.error:.2e} "
                    f"{'' if row.verified else 'WRONG '}{row.kernels}",
                    flush=True,
                )
                table.add([asdict(row)])
    return int(any(not row["verified"] for row in table.rows))


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--shape", action="append", type=Shape.parse, help="MxNxK, more than once")
    found.add_argument(
        "--precisions", nargs="+", choices=_SPLIT, default=_SPLIT, help="those of several terms"
    )
    found.add_argument(
        "--segments", nargs="+", type=_segment, default=list(_SEGMENTS), help="stages, beside ours"
    )
    found.add_argument("--rounds", type=int, default=3, help="turns of each segment")
    found.add_argument("--repeats", type=int, default=200, help="calls to time in a turn")
    found.add_argument("--seconds", type=float, default=0.45, help="or until this much is spent")
    found.add_argument("--rest", type=float, default=0.25, help="seconds before each turn")
    found.add_argument("--seed", type=int, default=1)
    return found


def _segment(text: str) -> int:
    """Groups of a tile's columns move one after the other, so there are as many stages at least."""
    least = 128 // wgmma_plan.MOVED_COLUMNS
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"segments must be {least} stages or more, got {text!r}")
    return int(text)


class Compared:
    """One product, made with each segment in turn."""

    def __init__(
        self, shape: Shape, precision: Precision, device: Device, check: ProductCheck,
        operands: Sequence[Any],
    ) -> None:  # fmt: skip
        self._shape, self._precision, self._device = shape, precision, device
        self._check = check
        self._candidate: Candidate = gemm_ours.candidates(device, [precision])[0]
        self._inputs = self._candidate.prepare(*operands)
        self._call = partial(self._candidate.compute, *self._inputs)

    def rows(self, segments: Sequence[int], how: argparse.Namespace) -> Iterator[SegmentRow]:
        """A row for each segment; the first one's time is what the others are compared with."""
        judged = {segment: self._judged(segment) for segment in segments}
        times: dict[int, list[float]] = {segment: [] for segment in segments}
        for turn in range(how.rounds):
            first = turn % len(segments)
            for segment in (*segments[first:], *segments[:first]):
                self._take(segment)
                time.sleep(how.rest)
                timing = measure(
                    [self._call], self._device, repeats=how.repeats, seconds=how.seconds, held=True
                )
                times[segment].append(timing.time_us_p50)
        self._take(_OWN)
        own = median(times[segments[0]])
        for segment in segments:
            found, kernels = judged[segment]
            yield SegmentRow(
                str(self._shape), self._precision.name, segment, kernels,
                median(times[segment]), median(times[segment]) / own,
                found.rel_frobenius, found.verified,
            )  # fmt: skip

    def _judged(self, segment: int) -> tuple[Any, str]:
        self._take(segment)
        self._inputs[-1].fill(float("nan"))
        found = self._check(self._call(), self._candidate)
        return found, self._candidate.chosen(*self._inputs)

    def _take(self, segment: int) -> None:
        """Calls are prepared anew, with totals that move after so many stages."""
        wgmma_plan.SEGMENT = segment
        tuning.TABLE.changed()


if __name__ == "__main__":
    sys.exit(main())
