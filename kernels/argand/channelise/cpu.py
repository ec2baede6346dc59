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
from numpy.lib.stride_tricks import as_strided

from argand.channelise.problem import ChanneliseProblem
from argand.channelise.signal import rows_of, written_array
from argand.device import available_cores
from argand.dft.api import dft
from argand.dft.scipy_transform import legacy
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import on_all_cores

Array = np.ndarray[Any, Any]
_BLOCK_BYTES = 1 << 20
"""Most bytes of filtered samples that a thread transforms at a time. They leave L2, but not L3, as
each block takes 10 us beside its arithmetic."""
_SHARED_BYTES = 1 << 18
"""Fewest bytes of filtered samples that cores share."""
_TILE_BYTES = 1 << 19
"""Bytes up to which the coefficients of all spectra of a block stay in a core's cache; NumPy's
loops over those are longer."""
_FEW = 1 << 16
"""Filtered samples of a call below which threads are not worth their start."""
_MAX_KEPT = 64
"""Most blocks of a filter bank that is kept: to make one takes little time beside the arithmetic of
more."""
_MAX_KEPT_BYTES = 1 << 20
"""Most bytes of its coefficients: thousands of forms may be kept."""


@dataclass(frozen=True)
class _Block:
    """Spectra ``phase + p m`` of some rows, for m in a range."""

    rows: slice
    phase: int
    start: int
    stop: int


class FilterBank:
    """The filter bank of a problem whose arguments are checked.

    Args:
        problem: the sizes and the precision.
        coefficients: (taps * channels,), float64.
    """

    def __init__(self, problem: ChanneliseProblem, coefficients: Array) -> None:
        self._problem = problem
        self._is_short = problem.rows * problem.spectra * problem.channels < _FEW
        self._blocks = list(_blocks(problem))
        kind, width = problem.precision.real_output, 1 if problem.real else 2
        self._h = np.repeat(coefficients.astype(kind), width).reshape(problem.taps, -1)
        if problem.conjugate:
            self._h[:, 1::2] *= -1  # coefficients of imaginary parts
        together = max((block.stop - block.start for block in self._blocks), default=1)
        if problem.phases == 1 and together * self._h.nbytes <= _TILE_BYTES:
            self._h = np.tile(self._h, (1, together))
        #: Whether it is kept for calls of the same form.
        self.is_kept = len(self._blocks) <= _MAX_KEPT and self._h.nbytes <= _MAX_KEPT_BYTES

    def __call__(self, x: Any, out: Any) -> Any:
        """Return the spectra (..., spectra, channels) of x (..., time), an array or `Pairs`.

        They are in ``out`` where it is given, of their shape and type and C-contiguous. Raises
        ValueError where it overlaps x.
        """
        problem = self._problem
        found = written_array(x, out, problem.shape, problem.dtype)
        if not found.size:
            return found
        rows = rows_of(x, len(problem.leading))
        target = found.reshape(problem.rows, problem.spectra, problem.bins)
        work = partial(_filtered_and_transformed, problem, rows, self._h, target)
        if self._is_short:
            for block in self._blocks:
                work(block)
        else:
            on_all_cores(work, self._blocks)
        return found


def _blocks(problem: ChanneliseProblem) -> Iterator[_Block]:
    if not problem.spectra:
        return
    item = np.dtype(problem.dtype).itemsize
    share = item * problem.rows * problem.spectra * problem.channels // available_cores()
    size = min(_BLOCK_BYTES, max(_SHARED_BYTES, share))
    step = max(1, size // (item * problem.channels))
    together = max(1, step * problem.phases // problem.spectra)
    for row in range(0, problem.rows, together):
        rows = slice(row, row + together)
        for phase in range(min(problem.phases, problem.spectra)):
            count = -(-(problem.spectra - phase) // problem.phases)
            for start in range(0, count, step):
                yield _Block(rows, phase, start, min(start + step, count))


def _filtered_and_transformed(
    problem: ChanneliseProblem, rows: Array, h: Array, target: Array, block: _Block
) -> None:
    """Write a block's spectra. ``h`` (taps, numbers) are the coefficients of one or of all."""
    first = block.phase + problem.phases * block.start
    last = block.phase + problem.phases * (block.stop - 1)
    spectra = target[block.rows, first : last + 1 : problem.phases]
    in_place = problem.phases == 1 and not problem.real and problem.precision.exact_operands
    filtered = spectra if in_place else None
    filtered = quietly(_filtered, problem, rows, h, block, filtered)
    found = _transformed(problem, _rotated(filtered, block.phase * problem.hop, problem))
    if not (in_place and np.may_share_memory(found, spectra)):
        spectra[...] = found


def _filtered(
    problem: ChanneliseProblem, rows: Array, h: Array, block: _Block, out: Array | None
) -> Array:
    """Return sum over t of h_(t M + r) x_(frame + t M + r): (rows, spectra, M), as the output."""
    frames, count = problem.frames, block.stop - block.start
    begin = block.phase * problem.hop + frames * block.start * problem.channels
    needed = frames * (count - 1) + problem.taps
    given = rows[block.rows, begin : begin + needed * problem.channels]
    numbers = _real(given, problem)
    if out is None:
        kind = problem.precision.real_output if problem.real else problem.dtype
        out = np.empty((len(given), count, problem.channels), kind)
    sums = out.view(problem.precision.real_output)
    width, (row, item) = sums.shape[2], numbers.strides
    # As rows of all spectra, where there are coefficients of all.
    h = h[:, : count * width]
    sums = sums.reshape(len(given), -1, h.shape[1])
    steps = row, frames * width * item, width * item, item
    windows = as_strided(numbers, (*sums.shape[:2], *h.shape), steps)
    # NumPy adds a tap's products to a row of sums while it is in the nearest cache.
    np.einsum("rstc,tc->rsc", windows, h, out=sums)
    return out


def _real(given: Array, problem: ChanneliseProblem) -> Array:
    """Return samples (rows, time) or their parts (rows, time, 2) as real numbers (rows, numbers).

    Only samples of another type, or that are not neighbours in time, are copied.
    """
    precision = problem.precision
    pairs = given.ndim == 3
    kind = np.dtype(precision.real_output if pairs or problem.real else precision.output)
    inner = kind.itemsize * (2 if pairs else 1)
    beside = (
        given.dtype == kind and given.strides[1] == inner and given.strides[-1] == kind.itemsize
    )
    if not beside:
        given = np.ascontiguousarray(given, kind)
    return given.reshape(len(given), -1).view(precision.real_output)


def _rotated(filtered: Array, start: int, problem: ChanneliseProblem) -> Array:
    """Return filtered samples in the order of their time modulo M."""
    offset = start % problem.channels
    return np.roll(filtered, offset, axis=-1) if offset else filtered


def _transformed(problem: ChanneliseProblem, filtered: Array) -> Array:
    precision = problem.precision
    if not precision.exact_operands:
        with np.errstate(all="ignore"):
            return np.asarray(dft(filtered, precision=precision)[..., : problem.bins])
    if not problem.real:
        return np.asarray(legacy()[0](filtered, overwrite_x=True))
    from scipy import fft

    # The caller may have set another backend, even ours.
    with fft.set_backend("scipy", only=True):
        return np.asarray(fft.rfft(filtered))
