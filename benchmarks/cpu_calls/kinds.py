"""Drawn cases of the operations of signal chains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np
from argand import (
    beam_power,
    channelise,
    fft_backend,
    herk,
    image,
    solve_hermitian,
    spectrum,
)  # fmt: skip
from argand.channelise.prototype import prototype
from argand.image.problem import SPEED_OF_LIGHT
from argand.runtime.complex_types import UNIT_ROUNDOFF
from scipy import fft
from scipy.signal import get_window

from benchmarks.cpu_calls.drawn import Drawn, leading_axes, normal, precision_of, size
from benchmarks.peers import study_peers


def _herk(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    n, k = size(rng, 2, 128), size(rng, 2, 1024)
    leading = leading_axes(batch, n * (n + k))
    x = normal(rng, dtype, *leading, n, k)
    return Drawn(
        "x".join(map(str, x.shape)), prod(leading), partial(herk, x),
        lambda: x @ x.conj().swapaxes(-1, -2), 8 * k,
    )  # fmt: skip


def _solve_hermitian(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    n, columns = size(rng, 2, 64), size(rng, 1, 16)
    leading = leading_axes(batch, n * (n + 2 * columns))
    x, b = normal(rng, dtype, *leading, n, 2 * n), normal(rng, dtype, *leading, n, columns)
    r = x @ x.conj().swapaxes(-1, -2) + np.eye(n)
    r = r.astype(dtype)
    condition = float(np.linalg.cond(r).max())
    return Drawn(
        "x".join(map(str, b.shape)), prod(leading), partial(solve_hermitian, r, b),
        partial(numpy_lines("hermitian", precision_of(dtype)), r, b), 64 * n * condition,
    )  # fmt: skip


def _beam_power(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    beams, antennas = (size(rng, 1, 64) for _ in range(2))
    integrate = size(rng, 1, 64)
    times = integrate * size(rng, 1, 64)
    leading = leading_axes(batch, beams * antennas + (beams + antennas) * times)
    w = normal(rng, dtype, *leading, beams, antennas)
    x = normal(rng, dtype, *leading, antennas, times)
    precision = precision_of(dtype)
    return Drawn(
        f"{'x'.join(map(str, w.shape))}x{times} of {integrate}", prod(leading),
        partial(beam_power, w, x, integrate=integrate, precision=precision),
        partial(numpy_lines("beam_power", precision), w, x, integrate=integrate),
        16 * (antennas + integrate),
    )  # fmt: skip


def _channelise(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    channels, taps = size(rng, 8, 512), size(rng, 2, 16)
    spectra = size(rng, 1, 64)
    samples = channels * (spectra + taps - 1)
    leading = leading_axes(batch, 2 * samples)
    x = normal(rng, dtype, *leading, samples)
    precision = precision_of(dtype)
    h = prototype("hamming", channels, taps)
    return Drawn(
        f"{'x'.join(map(str, x.shape))} to {channels} by {taps}", prod(leading),
        partial(channelise, x, channels, taps=taps, window="hamming", precision=precision),
        partial(numpy_lines("channelise", precision), x, h, channels), 64 * channels,
    )  # fmt: skip


def _spectrum(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    length, segments = (size(rng, 8, high) for high in (512, 64))
    average: int | str = 1 if rng.random() < 0.5 else "all"
    samples = length // 2 * (segments + 1) + length % 2
    leading = leading_axes(batch, 2 * samples)
    x = normal(rng, dtype, *leading, samples)
    count = (samples - length) // (length - length // 2) + 1
    precision, window = precision_of(dtype), get_window("hann", length)
    return Drawn(
        f"{'x'.join(map(str, x.shape))} by {length}, {average}", prod(leading),
        partial(spectrum, x, length, average=average, precision=precision),
        partial(
            numpy_lines("spectrum", precision), x, window, length // 2,
            count if average == "all" else 1,
        ),
        64 * length,
    )  # fmt: skip


def _image(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    antennas, channels, count = (
        size(rng, low, high) for low, high in ((2, 64), (1, 8), (64, 2048))
    )
    leading = leading_axes(batch, channels * antennas * (2 * antennas + count))
    x = normal(rng, dtype, *leading, channels, antennas, antennas)
    r = x @ x.conj().swapaxes(-1, -2)
    positions = 30 * rng.standard_normal((antennas, 3))
    frequencies = 1e8 * (1 + rng.random(channels))
    directions = np.column_stack([0.5 * rng.uniform(-1, 1, (count, 2)), np.zeros(count)])
    directions[:, 2] = np.sqrt(1 - np.square(directions[:, :2]).sum(axis=1))
    place, precision = (positions, frequencies, directions), precision_of(dtype)
    # Both sides' phases are of fp64, each off by at most seven roundings of the largest one.
    turns = np.sqrt(np.square(positions).sum(axis=1)).max() * frequencies.max() / SPEED_OF_LIGHT
    phase = 2 * 7 * 2 * np.pi * turns * (UNIT_ROUNDOFF["complex128"] / UNIT_ROUNDOFF[dtype])
    return Drawn(
        f"{'x'.join(map(str, r.shape))} to {count}", prod(leading),
        partial(image, r, *place, precision=precision),
        partial(numpy_lines("image", precision), r, *place), (64 + phase) * antennas,
    )  # fmt: skip


def _fft_backend(rng: np.random.Generator, batch: int, dtype: str) -> Drawn:
    length = size(rng, 8, 4096)
    leading = leading_axes(batch, 2 * length)
    x = normal(rng, dtype, *leading, length)
    # A context on both sides, so that to enter one is no part of their ratio.
    ours, scipys = fft.set_backend(fft_backend), fft.set_backend("scipy")

    def transformed(context: Any) -> Any:
        with context:
            return fft.fft(x)

    return Drawn(
        "x".join(map(str, x.shape)), prod(leading), partial(transformed, ours),
        partial(transformed, scipys), 0,
    )  # fmt: skip


def numpy_lines(operation: str, precision: str) -> Callable[..., Any]:
    """Return NumPy's peer of an operation, or SciPy's."""
    return study_peers(operation, "cpu")[0].computation(precision)


SIGNAL_KINDS: Mapping[str, Callable[[np.random.Generator, int, str], Drawn]] = {
    "herk": _herk,
    "solve_hermitian": _solve_hermitian,
    "beam_power": _beam_power,
    "channelise": _channelise,
    "spectrum": _spectrum,
    "image": _image,
    "fft_backend": _fft_backend,
}
"""Functions that draw a case, by operation."""
