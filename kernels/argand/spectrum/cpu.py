"""Spectral estimates on the CPU: blocks of windowed segments, their transforms, sums of squares."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from argand.channelise.signal import rows_of, written_array
from argand.device import available_cores
from argand.dft.api import dft
from argand.dft.scipy_transform import legacy
from argand.precision import PRECISIONS
from argand.runtime.cpu.threads import on_all_cores
from argand.spectrum.problem import Detrend, SpectrumProblem

Array = np.ndarray[Any, Any]
_BLOCK_BYTES = 1 << 19
"""Bytes of windowed segments that a thread transforms at a time: they fit L2."""
_FEW = 1 << 16
"""Windowed samples of a call below which threads are not worth their start."""


@dataclass(frozen=True)
class _Block:
    """Segments of some rows from ``start`` to ``stop``."""

    rows: slice
    start: int
    stop: int


class Estimator:
    """The spectral estimates of a problem whose arguments are checked.

    Args:
        problem: the sizes and the precision.
        coefficients: (length,), float64, as in `scaled_window`.
    """

    def __init__(self, problem: SpectrumProblem, coefficients: Array) -> None:
        self._problem = problem
        #: Whether a call is so short that threads are not worth their start.
        self.is_short = problem.rows * problem.segments * problem.length < _FEW
        self._blocks = list(_blocks(problem))
        self._has_parts = any((one.stop - one.start) % problem.average for one in self._blocks)
        #: The coefficient of each real number of a segment.
        self._h = np.repeat(
            coefficients.astype(problem.precision.real_output), 1 if problem.real else 2
        )

    def __call__(self, x: Any, out: Any) -> Any:
        """Return the means (..., groups, bins) of x (..., time), an array or `Pairs`.

        They are in ``out`` where it is given, of their shape and type and C-contiguous. Raises
        ValueError where it overlaps x.
        """
        problem, blocks = self._problem, self._blocks
        found = written_array(x, out, problem.shape, problem.dtype)
        if not found.size:
            return found
        rows = rows_of(x, len(problem.leading))
        target = found.reshape(problem.rows, problem.groups, problem.bins)
        work = partial(_write_means, problem, rows, self._h, target)
        workers = min(available_cores(), len(blocks))
        if workers < 2 or self.is_short:
            _collect(problem, blocks, map(work, blocks), target)
        elif not self._has_parts:
            on_all_cores(work, blocks)
        else:
            with ThreadPoolExecutor(workers) as pool:
                _collect(problem, blocks, pool.map(work, blocks), target)
        return found


def _blocks(problem: SpectrumProblem) -> Iterator[_Block]:
    """Yield blocks in order: of several rows or of whole groups of one, or of parts of a group."""
    item = np.dtype(problem.precision.output).itemsize
    most = max(1, _BLOCK_BYTES // (item * problem.length))
    average, segments = problem.average, problem.segments
    if not segments:
        return
    together = max(1, most // segments)
    for first_row in range(0, problem.rows, together):
        rows = slice(first_row, first_row + together)
        if average <= most:
            whole = most // average * average
            for start in range(0, segments, whole):
                yield _Block(rows, start, min(start + whole, segments))
            continue
        for first in range(0, segments, average):
            for start in range(first, first + average, most):
                yield _Block(rows, start, min(start + most, first + average))


def _write_means(
    problem: SpectrumProblem, rows: Array, h: Array, target: Array, block: _Block
) -> Array | None:
    """Write the means of a block of whole groups; of a part of a group, return its sums in fp64."""
    average, count = problem.average, block.stop - block.start
    with np.errstate(all="ignore"):
        x = _transformed(problem, _windowed(problem, rows, h, block))
        if average == 1:
            rows = target[block.rows, block.start : block.stop]
            _write_squares(x, rows[..., : problem.half])
            _finish(problem, rows)
            return None
        squares = np.empty(x.shape, problem.dtype)
        _write_squares(x, squares)
        if count % average:
            return np.asarray(squares.sum(axis=1, keepdims=True, dtype=np.float64))
        grouped = squares.reshape(len(squares), -1, average, squares.shape[-1])
        _write(problem, target, block, grouped.sum(axis=2, dtype=np.float64))
        return None


def _windowed(problem: SpectrumProblem, rows: Array, h: Array, block: _Block) -> Array:
    """Return the segments of a block times the window: (rows, segments, N), as transformed."""
    begin = block.start * problem.hop
    part = rows[block.rows, begin : (block.stop - 1) * problem.hop + problem.length]
    pairs = part.ndim == 3
    # A trend may be far larger than what it is subtracted from: in fp64 that is exact enough.
    held = PRECISIONS["fp64"] if problem.detrend else problem.precision
    wide = np.ascontiguousarray(part, held.real_output if pairs or problem.real else held.output)
    if pairs:
        wide = wide.view(held.output)[..., 0]
    own, count = problem.precision, block.stop - block.start
    kind = own.real_output if problem.real else own.output
    if problem.detrend:
        windows = np.lib.stride_tricks.sliding_window_view(wide, problem.length, axis=-1)
        windows = without_trend(windows[:, :: problem.hop], problem.detrend)
        return np.asarray(windows.astype(kind, copy=False) * h[:: len(h) // problem.length])
    # As real numbers, because NumPy would make the window complex and multiply by zeros too.
    numbers = wide.view(own.real_output)
    row, item = numbers.strides
    step = problem.hop * len(h) // problem.length * item
    windows = np.ndarray((len(wide), count, len(h)), h.dtype, numbers, 0, (row, step, item))
    return np.asarray((windows * h).view(kind))


def _transformed(problem: SpectrumProblem, windowed: Array) -> Array:
    precision = problem.precision
    if not precision.exact_operands:
        found = dft(windowed, inverse=problem.conjugate, norm=problem.norm, precision=precision)
        return np.asarray(found[..., : problem.half])
    if not problem.real and not problem.conjugate:
        return np.asarray(legacy()[0](windowed, overwrite_x=True))
    from scipy import fft

    # The caller may have set another backend, even ours.
    with fft.set_backend("scipy", only=True):
        if problem.real:
            return np.asarray(fft.rfft(windowed))
        # Conjugates have the squares of the other sign's transform.
        return np.asarray(fft.ifft(windowed, norm=problem.norm, overwrite_x=True))


def _collect(
    problem: SpectrumProblem, blocks: list[_Block], sums: Iterator[Array | None], target: Array
) -> None:
    """Write the means of groups of several blocks: a group's sums come one after another."""
    total: Array | None = None
    with np.errstate(all="ignore"):
        for block, found in zip(blocks, sums, strict=True):
            if found is None:
                continue
            total = found if total is None else total + found
            if block.stop % problem.average == 0:
                whole = _Block(block.rows, block.stop - problem.average, block.stop)
                _write(problem, target, whole, total)
                total = None


def _write(problem: SpectrumProblem, target: Array, block: _Block, sums: Array) -> None:
    """Write the means of a block's groups from their sums, which are changed."""
    average = problem.average
    sums /= average
    rows = target[block.rows, block.start // average : block.stop // average]
    rows[..., : problem.half] = sums
    _finish(problem, rows)


def _write_squares(x: Array, out: Array) -> None:
    """Write the squared magnitudes of x, whose parts are squared in place: they are contiguous."""
    parts = x.view(x.real.dtype)
    np.square(parts, parts)
    np.add(parts[..., ::2], parts[..., 1::2], out)


def _finish(problem: SpectrumProblem, rows: Array) -> None:
    """Double and mirror the powers of bins that stand for two."""
    half = problem.half
    rows[..., problem.doubled] *= 2
    if problem.bins > half:  # negative frequencies of real samples
        rows[..., half:] = rows[..., 1 : problem.length - half + 1][..., ::-1]


def without_trend(segments: Array, detrend: Detrend) -> Array:
    """Return segments (..., N) of fp64 less what ``detrend`` names, as ``scipy.signal.detrend``."""
    found = segments - segments.mean(axis=-1, keepdims=True)
    length = found.shape[-1]
    if detrend == "linear" and length > 1:
        times = np.arange(length) - (length - 1) / 2
        found -= (found @ times / (times @ times))[..., None] * times
    return np.asarray(found)
