"""Spectral estimates: ours, peers with spectra in memory, and a copy, in one run.

    python -m benchmarks.spectrum --csv spectrum.csv
    python -m benchmarks.spectrum --lengths 256 1024 4096 --averages 1 all --inputs complex64

Times are those of whole calls of `argand.spectrum` on samples of the device. Peers are
scipy.signal, or on a GPU what users of CuPy write, and our own kernels one after another, with
`argand.dft` between them (``unfused``); peers first make integers complex64, as their users would.
``of_copy`` compares the bytes of samples and powers with what a copy of as many moves a second in
the same run. Groups at the beginning, in the middle and at the end are verified against
SciPy in fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, spectrum
from argand.device import available_cores
from argand.spectrum.problem import WHOLE, SpectrumProblem, spectrum_problem
from argand.spectrum.window import window_of

from benchmarks.harness.samples import on_host
from benchmarks.harness.signals import (
    add_signal_arguments,
    as_argument,
    as_floats,
    drawn_samples,
)
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers
from workflow.accuracy.assessment import Accuracy
from workflow.accuracy.spectra_accuracy import (
    SpectraReference,
    assess_spectra,
    spectra_reference,
)
from workflow.accuracy.spectra_bounds import BLOCKS
from workflow.threads import by_threads

_OURS = ("argand", "unfused")
_VERIFIED = 1 << 22
"""Windowed samples of a stretch of groups that is verified; of one group all."""
_Call = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class SpectrumRow(WholeCall):
    """One way to estimate one spectrum.

    Attributes:
        length, overlap, samples: sizes.
        average: segments of a mean, or ``all``.
        input: complex64, int8 (pairs), float32 or real int8.
        gbytes_per_s: bytes of samples and powers, each once, over the median time.
        of_copy: over the rate of a copy, reads and writes counted.
        speedup: the first peer's median time of the same case over this one's.
        rel_frobenius, bound: error of the groups that are verified, and what it may be.
        noise_floor_db: what the arithmetic leaves in a bin beside the strongest one.
    """

    length: int
    overlap: int
    average: str
    samples: int
    implementation: str
    precision: str
    input: str
    gbytes_per_s: float
    of_copy: float
    speedup: float | None
    rel_frobenius: float | None
    bound: float | None
    noise_floor_db: float | None
    verdict: str


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where an estimate of ours was not verified."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "spectrum")
    device = clock.device
    copy = clock.copy_rate(arguments.samples)
    for kind in arguments.inputs:
        x = drawn_samples(kind, arguments, device)
        for length in arguments.lengths:
            for average in arguments.averages:
                case = _Case(kind, x, length, average, arguments, device)
                for row in _rows(case, copy, clock):
                    table.add([row], _line(row))
    ours = [row for row in table.rows if row["implementation"] in _OURS]
    return int(not all(row["verdict"] == "verified" for row in ours))


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--lengths", nargs="+", type=int, default=[1024])
    found.add_argument("--averages", nargs="+", default=["1", WHOLE], help="segments of a mean")
    found.add_argument("--overlap", type=float, default=0.5, help="over the length")
    add_signal_arguments(found)
    found.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32"])
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


class _Case:
    """Samples and how their power is estimated."""

    def __init__(
        self, kind: str, x: Any, length: int, average: str, arguments: argparse.Namespace,
        device: Device,
    ) -> None:  # fmt: skip
        self.kind, self.x, self.length, self.average = kind, x, length, average
        self.arguments, self.device = arguments, device
        self.overlap = min(length - 1, int(length * arguments.overlap))
        self.window = window_of("hann", length)

    def problem(self, precision: str) -> SpectrumProblem:
        """Return the problem at a precision; ends the program where it has no group."""
        found = spectrum_problem(
            self.x.shape[:2], length=self.length, overlap=self.overlap, average=self._groups,
            real=self.x.ndim == 2 and self.x.dtype.kind != "c", onesided=None,
            precision=PRECISIONS[precision],
        )  # fmt: skip
        if not found.groups:
            raise SystemExit(f"--samples must make a group of {self.average} segments in each row")
        return found

    @property
    def _groups(self) -> int | str:
        return self.average if self.average == WHOLE else int(self.average)

    def _verified(self) -> list[tuple[int, slice]]:
        """Return rows and groups to verify: at the beginning, in the middle and at the end."""
        problem = self.problem("fp64")
        count = max(1, _VERIFIED // (problem.average * problem.length))
        count, last = min(count, problem.groups), problem.rows - 1
        firsts = (
            (0, 0),
            (last // 2, (problem.groups - count) // 2),
            (last, problem.groups - count),
        )
        return [(row, slice(first, first + count)) for row, first in dict.fromkeys(firsts)]

    def reference(self) -> SpectraReference:
        """Return the powers that are verified, in fp64."""
        problem, parts = self.problem("fp64"), []
        for row, groups in self._verified():
            begin = groups.start * problem.average * problem.hop
            end = (groups.stop * problem.average - 1) * problem.hop + problem.length
            parts.append(on_host(self.x[row, begin:end]))
        x = np.stack(parts)
        if x.ndim == 3:
            x = np.ascontiguousarray(x, np.float32).view(np.complex64)[..., 0]
        part = replace(problem, leading=x.shape[:1], samples=x.shape[1])
        with by_threads(available_cores()):
            return spectra_reference(x, self.window, part, scaling="density", sample_rate=1.0)

    def calls(self) -> Iterator[tuple[str, str, _Call]]:
        """Yield name, precision and call of each implementation."""
        problem = self.problem("fp32")
        if not self.arguments.no_peer:
            for peer in study_peers("spectrum", self.device.backend):
                compute = peer.computation("fp32")
                yield peer.name, "fp32", partial(self._by_peer, compute, problem)
        for precision in self.arguments.precisions:
            if self.device.backend == "cuda" and not self.arguments.no_peer:
                yield "unfused", precision, partial(self._unfused, precision)
            yield "argand", precision, partial(self._ours, precision)

    def _by_peer(self, compute: Callable[..., Any], problem: SpectrumProblem) -> Any:
        return compute(as_floats(self.x), self.window, self.overlap, problem.average)

    def _ours(self, precision: str) -> Any:
        return spectrum(
            as_argument(self.x), self.length, overlap=self.overlap, average=self._groups,
            window=self.window, precision=precision,
        )  # fmt: skip

    def _unfused(self, precision: str) -> Any:
        from argand.spectrum.gpu import PLAN_OVERRIDE

        with PLAN_OVERRIDE.use(None):
            return self._ours(precision)

    def assess(
        self, found: Any, reference: SpectraReference, name: str, precision: str
    ) -> Accuracy:
        """Return the verdict on a result, by the bound of what of ours ran, else of any library."""
        ran = BLOCKS if name in _OURS else ""
        if ran and self.device.backend == "cuda":
            from argand.spectrum.gpu import PLAN_OVERRIDE, algorithm

            ran = algorithm(self.problem(precision), self.device)[1]
            if name == "unfused":
                with PLAN_OVERRIDE.use(None):
                    ran = algorithm(self.problem(precision), self.device)[1]
        result = np.stack([on_host(found[row, groups]) for row, groups in self._verified()])
        return assess_spectra(
            reference, result, PRECISIONS[precision], backend=self.device.backend, ran=ran
        )


def _rows(case: _Case, copy: float, clock: Clock) -> Iterator[SpectrumRow]:
    reference = case.reference()
    peer: float | None = None
    for name, precision, call in case.calls():
        found = call()
        accuracy = case.assess(found, reference, name, precision)
        moved = float(case.x.nbytes + found.nbytes)
        del found
        columns = clock.timed(call, ours=name in _OURS)
        time_us = columns["time_us_p50"]
        rate = 1e6 * moved / time_us
        floor = accuracy.measures.get("noise_floor_db")
        yield SpectrumRow(
            length=case.length, overlap=case.overlap, average=case.average,
            samples=int(case.x.shape[0] * case.x.shape[1]), implementation=name,
            precision=precision, input=case.kind, gbytes_per_s=rate / 1e9, of_copy=rate / copy,
            speedup=peer / time_us if peer else None, rel_frobenius=accuracy.rel_frobenius,
            bound=accuracy.bound, noise_floor_db=floor if isinstance(floor, float) else None,
            verdict=accuracy.verdict, **columns,
        )  # fmt: skip
        if peer is None and name not in _OURS:
            peer = time_us


def _line(row: SpectrumRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f}"
    return (
        f"{row.length:5} points, mean of {row.average:4} {row.input:9} {row.implementation:7} "
        f"{row.precision:6} {1e-3 * row.time_us_p50:9.3f} ms {row.gbytes_per_s:7.0f} GB/s  "
        f"{100 * row.of_copy:5.1f} % of copy{faster}  error {row.rel_frobenius or 0:.1e}  "
        f"{row.verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
