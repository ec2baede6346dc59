"""Images: ours, and the peer with the weights of a channel in memory, in one run.

    python -m benchmarks.image --csv image.csv
    python -m benchmarks.image --antennas 128 --channels 64 --grid 512 --precisions 3xtf32 fp16

Times are those of whole calls of `argand.image` on operands of the device, checks included. The
peer is NumPy or CuPy with the matrices as a user writes them: all weights of a channel, R w
and its product with the conjugate. Sampled directions of every image are compared with fp64.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, image
from argand.image.problem import SPEED_OF_LIGHT

from benchmarks.harness.measuring import array_module
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers
from workflow.accuracy.image_bounds import image_bound

RADIUS_M = 500.0
SAMPLED = 2048
"""Directions that are compared with fp64."""
_Call = Callable[[Any, Any, Any, Any], Any]


@dataclass(frozen=True, kw_only=True)
class ImageRow(WholeCall):
    """One way to compute one image.

    Attributes:
        antennas, channels, directions: sizes.
        tflops: 8 channels antennas^2 directions over the median time: a complex product in full.
        speedup: the fastest peer's median time of the same run over this one's.
        componentwise: largest error of a sampled direction over the sum of |Re R| + |Im R|.
        bound: what it may be (`workflow.accuracy.image_bounds`).
        verified: whether it is at most that.
        input: type of the covariances.
    """

    antennas: int
    channels: int
    directions: int
    implementation: str
    precision: str
    input: str
    tflops: float
    speedup: float | None
    componentwise: float
    bound: float
    verified: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where an image of ours was not accurate."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "image")
    operands = _operands(arguments, clock.device)
    peer: float | None = None
    for name, precision, call in _calls(arguments, clock.device):
        row = _measured(name, precision, call, operands, clock, peer)
        if name != "argand" and row.verified:
            peer = row.time_us_p50 if peer is None else min(peer, row.time_us_p50)
        table.add([row], _line(row))
    return table.status("verified", "argand")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--antennas", type=int, default=128)
    found.add_argument("--channels", type=int, default=64)
    found.add_argument("--grid", type=int, default=512, help="directions along l, and along m")
    found.add_argument(
        "--precisions", nargs="+", choices=list(PRECISIONS), default=list(PRECISIONS)
    )
    add_arguments(found, seconds=1.0, rest=0.2)
    return found


def _calls(arguments: argparse.Namespace, device: Device) -> Iterator[tuple[str, str, _Call]]:
    if not arguments.no_peer:
        for peer in study_peers("image", device.backend):
            yield peer.name, "fp32", peer.computation("fp32")
    for precision in arguments.precisions:
        yield "argand", precision, partial(image, precision=precision)


def _operands(arguments: argparse.Namespace, device: Device) -> tuple[Any, Any, Any, Any]:
    """Return covariances on the device; positions, frequencies and unit vectors."""
    arrays = array_module(device)
    rng = np.random.default_rng(arguments.seed)
    antennas, channels, n = arguments.antennas, arguments.channels, arguments.grid
    v = rng.standard_normal((channels, antennas, 2 * antennas, 2)).view(complex)[..., 0]
    r = (v @ v.conj().swapaxes(-1, -2) / (2 * antennas)).astype(np.complex64)
    axis = np.linspace(-0.5, 0.5, n)
    l, m = (x.ravel() for x in np.meshgrid(axis, axis))  # noqa: E741
    s = np.stack([l, m, np.sqrt(1 - l**2 - m**2)], axis=-1)
    x = RADIUS_M * rng.uniform(-1, 1, (antennas, 3))
    return arrays.asarray(r), x, 150e6 + 200e3 * np.arange(channels), arrays.asarray(s)


def _error(found: Any, operands: tuple[Any, Any, Any, Any]) -> float:
    """Return the largest error of sampled directions over T, against complex products in fp64."""
    x, f = operands[1:3]
    r, s = on_host(operands[0]).astype(complex), on_host(operands[3])
    rows = sampled_rows(len(s), SAMPLED)
    truth = direct_power(r, x, f, s[rows])
    size = float((np.abs(r.real) + np.abs(r.imag)).sum())
    return float(np.abs(on_host(found)[rows] - truth).max() / size)


def direct_power(r: Any, x: Any, f: Any, s: Any) -> Any:
    """Return power (direction,) of (channel, antenna, antenna) covariances by a direct sum in fp64.

    ``x`` are positions in m, ``f`` frequencies in Hz and ``s`` unit vectors, all of them NumPy's.
    """
    total = np.zeros(len(s))
    for matrix, frequency in zip(r, f, strict=True):
        w = np.exp(2j * np.pi * frequency / SPEED_OF_LIGHT * (x @ s.T))
        total += (w.conj() * (matrix @ w)).real.sum(axis=0)
    return total


def most_turns(x: Any, f: Any) -> float:
    """Return a bound on the wavelengths from the centre to an antenna, at the origin."""
    return float(2 * np.sqrt((x**2).sum(axis=1)).max() * f.max() / SPEED_OF_LIGHT)


def _measured(
    name: str, precision: str, call: _Call, operands: tuple[Any, Any, Any, Any], clock: Clock,
    peer: float | None,
) -> ImageRow:  # fmt: skip
    r, x, f, s = operands
    row = PRECISIONS[precision]
    given = (r.astype(row.output, copy=False), x, f, s)
    error = _error(call(*given), operands)
    columns = clock.timed(partial(call, *given), ours=name == "argand")
    time_us, antennas, channels = columns["time_us_p50"], len(x), len(f)
    bound = image_bound(row, antennas, channels, most_turns(x, f), clock.device.backend)
    flops = 8.0 * channels * antennas**2 * len(s)
    return ImageRow(
        antennas=antennas, channels=channels, directions=len(s), implementation=name,
        precision=precision, input=str(given[0].dtype), tflops=flops / time_us / 1e6,
        speedup=peer / time_us if peer else None, componentwise=error, bound=bound,
        verified=error <= bound, **columns,
    )  # fmt: skip


def _line(row: ImageRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f}"
    verdict = "" if row.verified else "  NOT ACCURATE"
    return (
        f"{row.antennas:5} x {row.channels} channels x {row.directions:7} directions "
        f"{row.implementation:7} {row.precision:7} {1e-3 * row.time_us_p50:10.2f} ms "
        f"{row.tflops:7.2f} TFLOP/s{faster}  error {row.componentwise:.1e}{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
