"""Filter banks on the CPU: the filter in blocks of spectra by NumPy, transforms by SciPy.

Spectra whose starts are equal modulo M (those of one phase) are whole frames of M samples apart. So
of each phase the filter is T products of frames with T M coefficients, rotated by the start, before
the transforms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from argand.channelise.problem import ChanneliseProblem
from argand.dft.api import dft
from argand.gemm.pairs import Pairs
from argand.runtime.threads import on_all_cores

Array = np.ndarray[Any, Any]
_BLOCK_BYTES = 1 << 18
"""Bytes of filtered samples that a thread transforms at a time: they fit L2."""
_FEW = 1 << 16
"""Filtered samples of a call below which threads are not worth their start."""


@dataclass(frozen=True)
class _Block:
    """Spectra ``phase + p m`` of a row, for m in a range."""

    row: int
    phase: int
    start: int
    stop: int


def channelise_in_blocks(
    problem: ChanneliseProblem, x: Any, coefficients: Array, out: Array
) -> None:
    """Write the spectra (..., spectra, channels) of a problem whose arguments are checked.

    Args:
        problem: the sizes and the precision.
        x: (..., time), an array or `Pairs`.
        coefficients: (taps * channels,), float64.
        out: C-contiguous, and not x.
    """
    if isinstance(x, Pairs):
        x = x.to_complex64() if x.format == "bf16" else x.array
    rows = x.reshape(problem.rows, problem.samples, *x.shape[len(problem.leading) + 1 :])
    kind = problem.precision.real_output
    width = 1 if problem.real else 2
    h = np.repeat(coefficients.astype(kind), width).reshape(problem.taps, -1)
    target = out.reshape(problem.rows, problem.spectra, problem.bins)
    work = partial(_filtered_and_transformed, problem, rows, h, target)
    blocks = list(_blocks(problem))
    if problem.rows * problem.spectra * problem.channels < _FEW:
        for block in blocks:
            work(block)
    else:
        on_all_cores(work, blocks)


def _blocks(problem: ChanneliseProblem) -> Iterator[_Block]:
    item = np.dtype(problem.dtype).itemsize
    step = max(1, _BLOCK_BYTES // (item * problem.channels))
    for row in range(problem.rows):
        for phase in range(min(problem.phases, problem.spectra)):
            count = -(-(problem.spectra - phase) // problem.phases)
            for start in range(0, count, step):
                yield _Block(row, phase, start, min(start + step, count))


def _filtered_and_transformed(
    problem: ChanneliseProblem, rows: Array, h: Array, target: Array, block: _Block
) -> None:
    with np.errstate(all="ignore"):
        filtered = _rotated(_filtered(problem, rows, h, block), block.phase * problem.hop, problem)
        spectra = _transformed(problem, filtered)
    first = block.phase + problem.phases * block.start
    last = block.phase + problem.phases * (block.stop - 1)
    target[block.row, first : last + 1 : problem.phases] = spectra


def _filtered(problem: ChanneliseProblem, rows: Array, h: Array, block: _Block) -> Array:
    """Return sum over t of h_(t M + r) x_(frame + t M + r): (spectra, M), of the output's type."""
    frames, taps, count = problem.frames, problem.taps, block.stop - block.start
    begin = block.phase * problem.hop + frames * block.start * problem.channels
    needed = frames * (count - 1) + taps
    given = rows[block.row, begin : begin + needed * problem.channels]
    precision = problem.precision
    pairs = given.ndim == 2
    kind = precision.real_output if pairs or problem.real else precision.output
    wide = np.ascontiguousarray(given, kind).reshape(-1).view(precision.real_output)
    frame = wide.reshape(needed, -1)
    stop = frames * (count - 1) + 1
    found = frame[:stop:frames] * h[0]
    product = np.empty_like(found)
    for tap in range(1, taps):
        np.multiply(frame[tap : tap + stop : frames], h[tap], out=product)
        found += product
    filtered: Array = found if problem.real else found.view(problem.dtype)
    return filtered


def _rotated(filtered: Array, start: int, problem: ChanneliseProblem) -> Array:
    """Return filtered samples in the order of their time modulo M."""
    offset = start % problem.channels
    return np.roll(filtered, offset, axis=-1) if offset else filtered


def _transformed(problem: ChanneliseProblem, filtered: Array) -> Array:
    precision = problem.precision
    if not precision.exact_operands:
        return np.asarray(dft(filtered, precision=precision)[:, : problem.bins])
    from scipy import fft

    # The caller may have set another backend, even ours.
    with fft.set_backend("scipy", only=True):
        found = fft.rfft(filtered) if problem.real else fft.fft(filtered, overwrite_x=True)
    return np.asarray(found)
