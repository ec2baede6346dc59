"""Filter banks: ours, the peer with filtered samples in memory, and a copy, in one run.

    python -m benchmarks.channelise --csv channelise.csv
    python -m benchmarks.channelise --channels 1024 4096 --taps 8 --inputs int8 complex64

Times are those of whole calls of `argand.channelise` on samples of the device. The peer is NumPy,
or on a GPU one filter kernel of CuPy and cuFFT; integers it first makes complex64, as its user
would.
``of_copy`` compares the bytes of samples and spectra with what a copy of as many moves a second in
the same run. Sampled spectra are compared with fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, ChanneliseProblem, Precision, channelise
from argand.channelise.problem import oversampling_of
from scipy.signal import firwin

from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.harness.signals import (
    add_signal_arguments,
    as_argument,
    as_floats,
    drawn_samples,
)
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers
from workflow.accuracy.channelise_accuracy import channelise_reference
from workflow.accuracy.channelise_bounds import channelise_bound

SAMPLED = 64
"""Spectra that are compared with fp64."""


@dataclass(frozen=True, kw_only=True)
class ChanneliseRow(WholeCall):
    """One way to compute one filter bank.

    Attributes:
        channels, taps, oversampling, samples: sizes.
        input: complex64, int8 (pairs), float32 or real int8.
        gbytes_per_s: bytes of samples and spectra, each once, over the median time.
        of_copy: over the rate of a copy, reads and writes counted.
        speedup: the peer's median time of the same input over this one's.
        error: largest 2-norm error of a sampled spectrum over what the bound allows.
        verified: whether that is at most 1.
    """

    channels: int
    taps: int
    oversampling: str
    samples: int
    implementation: str
    precision: str
    input: str
    gbytes_per_s: float
    of_copy: float | None
    speedup: float | None
    error: float
    verified: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a filter bank of ours was not accurate."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "channelise")
    for channels in arguments.channels:
        one = argparse.Namespace(**vars(arguments) | {"channels": channels})
        for row in _Banks(one, clock).rows():
            table.add([row], _line(row))
    return table.status("verified", "argand")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--channels", type=int, nargs="+", default=[1024])
    found.add_argument("--taps", type=int, default=8)
    found.add_argument("--oversampling", default="1", help="a fraction such as 4/3")
    add_signal_arguments(found)
    found.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32"])
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


@dataclass(frozen=True)
class _Bank:
    """A filter bank to time: ``compute`` returns the spectra of samples on the device."""

    implementation: str
    precision: str
    compute: Callable[[Any], Any]


class _Banks:
    """Filter banks of one number of channels, ``arguments.channels``, on a device."""

    def __init__(self, arguments: argparse.Namespace, clock: Clock) -> None:
        self.arguments, self.clock, self.device = arguments, clock, clock.device
        self.channels: int = arguments.channels
        self.taps: int = arguments.taps
        self.coefficients = firwin(self.channels * self.taps, 1 / self.channels)
        self.oversampling = oversampling_of(arguments.oversampling, self.channels)

    def rows(self) -> Iterator[ChanneliseRow]:
        """Yield a row for each kind of input and each bank, as soon as it is measured."""
        for kind in self.arguments.inputs:
            x = drawn_samples(kind, self.arguments, self.device)
            copy = self.clock.copy_rate(self.arguments.samples)
            peer_us: float | None = None
            for bank in self._banks():
                row = self._measured(bank, kind, x, copy, peer_us)
                if bank.implementation != "argand" and bank.precision == "fp32":
                    peer_us = row.time_us_p50
                yield row

    def _banks(self) -> Iterator[_Bank]:
        """Yield the peers that are asked for, then ours at each precision."""
        if not self.arguments.no_peer:
            for peer in study_peers("channelise", self.device.backend):
                yield _Bank(peer.name, "fp32", partial(self._by_peer, peer.computation("fp32")))
        for precision in self.arguments.precisions:
            yield _Bank("argand", precision, partial(self._by_argand, precision))

    def _by_peer(self, compute: Callable[..., Any], x: Any) -> Any:
        return compute(
            as_floats(x), self.coefficients, self.channels, oversampling=self.oversampling
        )

    def _by_argand(self, precision: str, x: Any) -> Any:
        return channelise(
            as_argument(x), self.channels, self.taps, window=self.coefficients,
            oversampling=self.oversampling, precision=precision,
        )  # fmt: skip

    def _measured(
        self, bank: _Bank, kind: str, x: Any, copy: float | None, peer_us: float | None
    ) -> ChanneliseRow:
        """Return the row of a bank; ``copy`` is in bytes a second, ``peer_us`` the peer's time."""
        found = bank.compute(x)
        error = self._error(found, x, PRECISIONS[bank.precision])
        moved = float(x.nbytes + found.nbytes)
        del found
        columns = self.clock.timed(partial(bank.compute, x), ours=bank.implementation == "argand")
        time_us = columns["time_us_p50"]
        rate = 1e6 * moved / time_us
        return ChanneliseRow(
            channels=self.channels, taps=self.taps, oversampling=self.arguments.oversampling,
            samples=int(x.shape[0] * x.shape[1]), implementation=bank.implementation,
            precision=bank.precision, input=kind, gbytes_per_s=rate / 1e9,
            of_copy=rate / copy if copy else None, speedup=peer_us / time_us if peer_us else None,
            error=error, verified=error <= 1, **columns,
        )  # fmt: skip

    def _error(self, found: Any, x: Any, precision: Precision) -> float:
        """Return the largest error of sampled spectra of the first row over its bound."""
        m, h, ran = self.channels, self.coefficients, ""
        real = x.ndim == 2 and x.dtype.kind != "c"
        problem = ChanneliseProblem(
            (x.shape[0],), x.shape[1], m, self.taps, self.oversampling, real, precision
        )
        if not problem.spectra:
            raise SystemExit(f"--samples must be at least channels times taps, {len(h)}, a row")
        if self.device.backend == "cuda":
            from argand.channelise.gpu import algorithm

            ran = algorithm(problem, self.device)[1]
        bound = channelise_bound(precision, m, self.taps, self.device.backend, real=real, ran=ran)
        worst = 0.0
        for s in sampled_rows(problem.spectra, SAMPLED):
            begin = int(s) * problem.hop
            part = on_host(x[0, begin : begin + len(h)])
            part = part if part.dtype.kind == "c" else part.astype(float)
            given = part[:, 0] + 1j * part[:, 1] if part.ndim == 2 else part
            one = channelise_reference(given, h, m, self.oversampling)
            # The reference counts phases from the samples that it is given.
            turns = begin % m * np.arange(one.values.shape[-1]) % m
            truth = one.values[0, 0] * np.exp(-2j * np.pi * turns / m)
            error = np.linalg.norm(on_host(found[0, int(s)]) - truth) * (2**0.5 if real else 1)
            worst = max(worst, float(error / bound.allowed(one.size[0, 0], one.norm[0, 0])))
        return worst


def _line(row: ChanneliseRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f}"
    verdict = "" if row.verified else "  NOT ACCURATE"
    return (
        f"{row.channels:5} channels x {row.taps} taps ({row.oversampling}) {row.input:9} "
        f"{row.implementation:7} {row.precision:6} {1e-3 * row.time_us_p50:9.3f} ms "
        f"{row.gbytes_per_s:7.0f} GB/s  {100 * (row.of_copy or 0):5.1f} % of copy{faster}  "
        f"error {row.error:.1e} of its bound{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
