"""Calls on the CPU at drawn sizes, ours beside the lines of NumPy that a user would write.

    python -m benchmarks.cpu_calls --cases 40 --seed 20261127 --csv cpu-calls.csv

A third of the cases is one matrix, system or row, the others are up to 1024 of them; of operands
and results together there are up to 2^18 numbers, so that what a call costs beside its arithmetic
shows. Both sides are called in turn, and the least time of each counts: what else runs on the
machine only adds to it. ``--kinds`` names the operations. Results are compared, not times.
fft_backend is scipy.fft.fft with `argand.fft_backend` set beside the same call without.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from argand import (
    PRECISIONS,
    beam_power,
    channelise,
    fft_backend,
    herk,
    image,
    solve_hermitian,
    spectrum,
)  # fmt: skip
from argand.channelise.prototype import prototype
from argand.device import cpu
from argand.runtime.complex_types import UNIT_ROUNDOFF
from scipy import fft
from scipy.signal import get_window

from benchmarks.harness.tables import Table, parser
from benchmarks.peers import study_peers
from benchmarks.sweep.draws import log_uniform
from workflow.versions import timestamp, versions

_MOST_NUMBERS = 1 << 18
_ROUND_SECONDS = 2e-4
"""Shortest time of a measurement: several calls of less."""


@dataclass(frozen=True)
class Drawn:
    """One call of ours, the lines of NumPy, and what they are called with.

    ``share`` is how far results may be apart, over the largest element, in unit roundoffs: that of
    sums of so many products, of systems times their condition too.
    """

    shape: str
    batch: int
    ours: Callable[[], Any]
    lines: Callable[[], Any]
    share: float


@dataclass(frozen=True, kw_only=True)
class CpuCall:
    """The least times of both sides; ``ratio`` is that of NumPy over ours."""

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
    arguments = found.parse_args(argv)
    table = Table(arguments.csv)
    for kind in arguments.kinds:
        rng = np.random.default_rng(arguments.seed)
        for number in range(arguments.cases):
            dtype = "complex128" if number % 3 == 2 else "complex64"
            row = _row(kind, KINDS[kind](rng, _batch(rng), dtype), dtype, arguments)
            table.add([row], f"{kind:16} {row.shape:24} {dtype:10} {row.time_us:9.1f} us "
                             f"NumPy {row.numpy_us:9.1f} us {row.ratio:5.2f} "
                             f"{'yes' if row.verified else 'NO'}")  # fmt: skip
    return table.status("verified")


def _batch(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 1 / 3 else _size(rng, 2, 1024)


def _row(kind: str, drawn: Drawn, dtype: str, arguments: argparse.Namespace) -> CpuCall:
    ours, lines = drawn.ours(), drawn.lines()
    apart = np.abs(ours - lines).max() / np.abs(lines).max()
    time_us, numpy_us = (1e6 * x for x in _in_turn([drawn.ours, drawn.lines], arguments.seconds))
    return CpuCall(
        operation=kind, shape=drawn.shape, batch=drawn.batch, dtype=dtype, time_us=time_us,
        numpy_us=numpy_us, ratio=numpy_us / time_us,
        verified=bool(apart <= drawn.share * UNIT_ROUNDOFF[dtype]), device=cpu().name,
        seed=arguments.seed, versions=versions(), timestamp=timestamp(),
    )  # fmt: skip


def _in_turn(calls: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Return the least seconds of each call, measured in turn for so long a call."""
    least = [np.inf] * len(calls)
    count, started = 1, time.perf_counter()
    while time.perf_counter() - started < seconds * len(calls) or least[0] == np.inf:
        for number, call in enumerate(calls):
            before = time.perf_counter()
            for _ in range(count):
                call()
            least[number] = min(least[number], (time.perf_counter() - before) / count)
        count = max(count, int(_ROUND_SECONDS / min(least)))
    return least


def _normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    real = np.float32 if dtype == "complex64" else np.float64
    return rng.standard_normal((*shape, 2), real).view(dtype)[..., 0]


def _size(rng: np.random.Generator, low: int, high: int) -> int:
    return int(log_uniform(rng, low, high, (1,))[0])


def _leading(batch: int, numbers: int) -> tuple[int, ...]:
    """Return the leading axes of so many operands, or of as many as there may be."""
    batch = min(batch, max(1, _MOST_NUMBERS // numbers))
    return () if batch == 1 else (batch,)


def _herk(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    n, k = _size(rng, 2, 128), _size(rng, 2, 1024)
    leading = _leading(batch, n * (n + k))
    x = _normal(rng, dtype, *leading, n, k)
    return Drawn(
        "x".join(map(str, x.shape)), prod(leading), partial(herk, x),
        lambda: x @ x.conj().swapaxes(-1, -2), 8 * k,
    )  # fmt: skip


def _solve_hermitian(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    n, columns = _size(rng, 2, 64), _size(rng, 1, 16)
    leading = _leading(batch, n * (n + 2 * columns))
    x, b = _normal(rng, dtype, *leading, n, 2 * n), _normal(rng, dtype, *leading, n, columns)
    r = x @ x.conj().swapaxes(-1, -2) + np.eye(n)
    r = r.astype(dtype)
    condition = float(np.linalg.cond(r).max())
    return Drawn(
        "x".join(map(str, b.shape)), prod(leading), partial(solve_hermitian, r, b),
        partial(_lines("hermitian", _precision(dtype)), r, b), 64 * n * condition,
    )  # fmt: skip


def _beam_power(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    beams, antennas = (_size(rng, 1, 64) for _ in range(2))
    integrate = _size(rng, 1, 64)
    times = integrate * _size(rng, 1, 64)
    leading = _leading(batch, beams * antennas + (beams + antennas) * times)
    w = _normal(rng, dtype, *leading, beams, antennas)
    x = _normal(rng, dtype, *leading, antennas, times)
    precision = _precision(dtype)
    return Drawn(
        f"{'x'.join(map(str, w.shape))}x{times} of {integrate}", prod(leading),
        partial(beam_power, w, x, integrate=integrate, precision=precision),
        partial(_lines("beam_power", precision), w, x, integrate=integrate),
        16 * (antennas + integrate),
    )  # fmt: skip


def _channelise(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    channels, taps = _size(rng, 8, 512), _size(rng, 2, 16)
    spectra = _size(rng, 1, 64)
    samples = channels * (spectra + taps - 1)
    leading = _leading(batch, 2 * samples)
    x = _normal(rng, dtype, *leading, samples)
    precision = _precision(dtype)
    h = prototype("hamming", channels, taps)
    return Drawn(
        f"{'x'.join(map(str, x.shape))} to {channels} by {taps}", prod(leading),
        partial(channelise, x, channels, taps=taps, window="hamming", precision=precision),
        partial(_lines("channelise", precision), x, h, channels), 64 * channels,
    )  # fmt: skip


def _spectrum(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    length, segments = (_size(rng, 8, high) for high in (512, 64))
    average: int | str = 1 if rng.random() < 0.5 else "all"
    samples = length // 2 * (segments + 1) + length % 2
    leading = _leading(batch, 2 * samples)
    x = _normal(rng, dtype, *leading, samples)
    count = (samples - length) // (length - length // 2) + 1
    precision, window = _precision(dtype), get_window("hann", length)
    return Drawn(
        f"{'x'.join(map(str, x.shape))} by {length}, {average}", prod(leading),
        partial(spectrum, x, length, average=average, precision=precision),
        partial(
            _lines("spectrum", precision), x, window, length // 2, count if average == "all" else 1
        ),
        64 * length,
    )  # fmt: skip


def _image(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    antennas, channels, count = (
        _size(rng, low, high) for low, high in ((2, 64), (1, 8), (64, 2048))
    )
    leading = _leading(batch, channels * antennas * (2 * antennas + count))
    x = _normal(rng, dtype, *leading, channels, antennas, antennas)
    r = x @ x.conj().swapaxes(-1, -2)
    positions = 30 * rng.standard_normal((antennas, 3))
    frequencies = 1e8 * (1 + rng.random(channels))
    directions = np.column_stack([0.5 * rng.uniform(-1, 1, (count, 2)), np.zeros(count)])
    directions[:, 2] = np.sqrt(1 - np.square(directions[:, :2]).sum(axis=1))
    place, precision = (positions, frequencies, directions), _precision(dtype)
    return Drawn(
        f"{'x'.join(map(str, r.shape))} to {count}", prod(leading),
        partial(image, r, *place, precision=precision),
        partial(_lines("image", precision), r, *place), 64 * antennas,
    )  # fmt: skip


def _fft_backend(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    length = _size(rng, 8, 4096)
    leading = _leading(batch, 2 * length)
    x = _normal(rng, dtype, *leading, length)
    # A context on both sides, so that to enter one is no part of their ratio.
    ours, scipys = fft.set_backend(fft_backend), fft.set_backend("scipy")

    def transformed(context: Any) -> Any:
        with context:
            return fft.fft(x)

    return Drawn(
        "x".join(map(str, x.shape)), prod(leading), partial(transformed, ours),
        partial(transformed, scipys), 0,
    )  # fmt: skip


def _lines(operation: str, precision: str) -> Callable[..., Any]:
    """Return NumPy's peer of an operation, or SciPy's."""
    return study_peers(operation, "cpu")[0].computation(precision)


def _precision(dtype: str) -> str:
    return next(name for name, row in PRECISIONS.items() if row.output == dtype)


KINDS: Mapping[str, Callable[[np.random.Generator, int, str], Drawn]] = {
    "herk": _herk,
    "solve_hermitian": _solve_hermitian,
    "beam_power": _beam_power,
    "channelise": _channelise,
    "spectrum": _spectrum,
    "image": _image,
    "fft_backend": _fft_backend,
}
"""Functions that draw a case, by operation."""


if __name__ == "__main__":
    sys.exit(main())
