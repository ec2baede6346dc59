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
from argand import PRECISIONS, ChanneliseProblem, Device, channelise
from argand.channelise.problem import oversampling_of
from scipy.signal import firwin

from benchmarks.harness.conditions import Monitor, monitor
from benchmarks.harness.measuring import chosen_device, release
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.harness.signals import (
    add_signal_arguments,
    as_argument,
    as_floats,
    copy_rate,
    drawn_samples,
)
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import WholeCall, add_arguments, timed
from benchmarks.peers import study_peers
from workflow.accuracy.channelise_accuracy import channelise_reference
from workflow.accuracy.channelise_bounds import channelise_bound

SAMPLED = 64
"""Spectra that are compared with fp64."""
_Call = Callable[[Any], Any]


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
    device = chosen_device(arguments.device)
    table, watch = Table(arguments.csv), monitor(device)
    for channels in arguments.channels:
        one = argparse.Namespace(**vars(arguments) | {"channels": channels})
        _add_rows(table, one, device, watch)
    return int(not all(row["verified"] for row in table.rows if row["implementation"] == "argand"))


def _add_rows(table: Table, arguments: argparse.Namespace, device: Device, watch: Monitor) -> None:
    """Measure the banks of one number of channels."""
    h = firwin(arguments.channels * arguments.taps, 1 / arguments.channels)
    for kind in arguments.inputs:
        x = drawn_samples(kind, arguments, device)
        copy = copy_rate(arguments, device, watch)
        peer: float | None = None
        for name, precision, call in _calls(h, arguments, device):
            row = _measured(name, precision, kind, call, x, h, copy, peer, arguments, device, watch)
            if name != "argand" and precision == "fp32":
                peer = row.time_us_p50
            table.add([row], _line(row))


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--channels", type=int, nargs="+", default=[1024])
    found.add_argument("--taps", type=int, default=8)
    found.add_argument("--oversampling", default="1", help="a fraction such as 4/3")
    add_signal_arguments(found)
    found.add_argument("--precisions", nargs="+", choices=list(PRECISIONS), default=["fp32"])
    found.add_argument("--no-peer", action="store_true", help="ours alone")
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


def _calls(
    h: Any, arguments: argparse.Namespace, device: Device
) -> Iterator[tuple[str, str, _Call]]:
    m = arguments.channels
    oversampling = oversampling_of(arguments.oversampling, m)
    if not arguments.no_peer:
        for peer in study_peers("channelise", device.backend):
            compute = peer.computation("fp32")

            def by_peer(compute: Callable[..., Any], x: Any) -> Any:
                return compute(as_floats(x), h, m, oversampling=oversampling)

            yield peer.name, "fp32", partial(by_peer, compute)

    def ours(precision: str, x: Any) -> Any:
        return channelise(
            as_argument(x), m, arguments.taps, window=h, oversampling=oversampling,
            precision=precision,
        )  # fmt: skip

    for precision in arguments.precisions:
        yield "argand", precision, partial(ours, precision)


def _error(
    found: Any, x: Any, h: Any, precision: str, arguments: argparse.Namespace, device: Device
) -> float:
    """Return the largest error of sampled spectra of the first row over its bound."""
    m = arguments.channels
    fraction = oversampling_of(arguments.oversampling, m)
    row, ran = PRECISIONS[precision], ""
    real = x.ndim == 2 and x.dtype.kind != "c"
    problem = ChanneliseProblem((x.shape[0],), x.shape[1], m, arguments.taps, fraction, real, row)
    if not problem.spectra:
        raise SystemExit(f"--samples must be at least channels times taps, {len(h)}, a row")
    if device.backend == "cuda":
        from argand.channelise.gpu import algorithm

        ran = algorithm(problem, device)[1]
    bound = channelise_bound(row, m, arguments.taps, device.backend, real=real, ran=ran)
    worst = 0.0
    for s in sampled_rows(problem.spectra, SAMPLED):
        begin = int(s) * problem.hop
        part = on_host(x[0, begin : begin + len(h)])
        part = part if part.dtype.kind == "c" else part.astype(float)
        given = part[:, 0] + 1j * part[:, 1] if part.ndim == 2 else part
        one = channelise_reference(given, h, m, fraction)
        # The reference counts phases from the samples that it is given.
        turns = begin % m * np.arange(one.values.shape[-1]) % m
        truth = one.values[0, 0] * np.exp(-2j * np.pi * turns / m)
        error = np.linalg.norm(on_host(found[0, int(s)]) - truth) * (2**0.5 if real else 1)
        worst = max(worst, float(error / bound.allowed(one.size[0, 0], one.norm[0, 0])))
    return worst


def _measured(
    name: str, precision: str, kind: str, call: _Call, x: Any, h: Any, copy: float | None,
    peer: float | None, arguments: argparse.Namespace, device: Device, watch: Monitor,
) -> ChanneliseRow:  # fmt: skip
    found = call(x)
    error = _error(found, x, h, precision, arguments, device)
    moved = float(x.nbytes + found.nbytes)
    del found
    columns = timed(
        partial(call, x), arguments, device, watch, "channelise" if name == "argand" else None
    )
    time_us = columns["time_us_p50"]
    release(device)
    rate = 1e6 * moved / time_us
    return ChanneliseRow(
        channels=arguments.channels, taps=arguments.taps, oversampling=arguments.oversampling,
        samples=int(x.shape[0] * x.shape[1]), implementation=name, precision=precision, input=kind,
        gbytes_per_s=rate / 1e9, of_copy=rate / copy if copy else None,
        speedup=peer / time_us if peer else None, error=error, verified=error <= 1, **columns,
    )  # fmt: skip


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
