"""Softmax on the CPU, with the rounding of the GPU's: the model of every precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.precision import BF16, FP32, FP64
from argand.rounding import Array, round_operand
from argand.runtime.cpu.threads import on_all_cores
from argand.softmax.formats import COMPLEX_KINDS, Operation, bf16_bits, bf16_values

if TYPE_CHECKING:
    from argand.softmax.problem import SoftmaxProblem

TILE_COLUMNS = 32768
"""Columns of a tile. Rows of one tile are read once."""
BLOCK_VALUES = 1 << 21
"""Values of the rows that a thread works on at a time. They stay in the last-level cache, and
NumPy's calls are long enough that threads seldom wait for the interpreter lock."""
UNSHIFTED = 60.0
"""Largest exponent of a row whose exponentials need no shift: e^60 times 2^40 is finite."""
_FAR = -80.0
"""Below this exponent a tile is rescaled in two steps, because e^-80 is close to fp32's least."""
_ALONE = 1 + 1e-6
"""A row's sum of up to this multiple of its largest term may be that term alone, rounded."""
RECIPROCAL_COLUMNS = 2048
"""Columns of fp64 from which products with 1 / sum, and the test that permits them, take less time
than quotients. Products of fp32 never do."""
EXACT_KINDS = {"float64": FP64.name, "float32": FP32.name}
"""The kind of element that needs no conversion, by the type of the computation."""


def softmax(
    problem: SoftmaxProblem, x: Array, out: Array | None,
    solve: Callable[[Array, Array], None] | None = None,
) -> Array:  # fmt: skip
    """Return the solution of a SoftmaxProblem by threads that share rows; ``out`` is checked.

    ``solve`` writes the solution of rows, contiguous and apart from them or in place; by default
    `solve_block` does.
    """
    if solve is None:
        solve = partial(solve_block, problem)
    target = out if out is not None else np.empty(problem.result_shape, problem.result_type)
    rows = x.reshape(-1, problem.columns)
    shape = rows.shape[: 1 + (problem.operation != "logsumexp")]
    # Rows are written while others are read: safe without overlap, or in place.
    direct = target.flags.c_contiguous and (
        _in_place(rows, target) or not np.may_share_memory(rows, target)
    )
    results = target.reshape(shape) if direct else np.empty(shape, target.dtype)
    step = max(1, BLOCK_VALUES // problem.columns)
    starts = range(0, len(rows), step)

    def work(start: int) -> None:
        block = slice(start, start + step)
        solve(rows[block], results[block])

    on_all_cores(work, starts)
    if not direct:
        target[...] = results.reshape(problem.result_shape)
    return target


def _in_place(rows: Array, target: Array) -> bool:
    """Return whether each element of a contiguous target lies where that of the rows does."""
    return bool(
        rows.ctypes.data == target.ctypes.data
        and rows.dtype == target.dtype
        and rows.size == target.size
        and rows.flags.c_contiguous
    )


def solve_block(problem: SoftmaxProblem, x: Array, out: Array) -> None:
    """Solve some rows; ``out`` is contiguous."""
    real = problem.precision.real_output
    if problem.operation == "logsumexp":
        found = np.empty(x.shape, real)
        _round_into(out, _rows(x, found, problem)[:, 0], problem.output)
    elif EXACT_KINDS[real] == problem.output:
        _rows(x, out, problem)
    else:
        found = np.empty(x.shape, real)
        _rows(x, found, problem)
        _round_into(out, found, problem.output)


def _round_into(out: Array, values: Array, kind: str) -> None:
    with np.errstate(over="ignore"):
        out[...] = bf16_bits(values.astype(np.float32)) if kind == BF16.name else values


def _rows(x: Array, out: Array, problem: SoftmaxProblem) -> Array:
    """Apply the tiled recurrence to rows; ``out`` is a contiguous (rows, columns) of its type.

    Returns the logarithm of each row's sum, (rows, 1), for logsumexp, which leaves ``out``
    undefined; otherwise the sums.
    """
    tiles = [
        slice(start, start + TILE_COLUMNS) for start in range(0, problem.columns, TILE_COLUMNS)
    ]
    scale = out.dtype.type(problem.scale)
    running_max = np.full((len(x), 1), -np.inf, out.dtype)
    running_sum = np.zeros((len(x), 1), out.dtype)
    largest = running_max
    shifts = []
    # inf - inf is intended: as in SciPy, rows of -inf alone or with +inf in them are NaN.
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for tile in tiles:
            values = _operand(x[:, tile], problem)
            tile_max = values.max(axis=-1, keepdims=True)
            largest = np.maximum(largest, tile_max)
            nothing = tile_max == -np.inf
            shift = np.where(nothing, 0, tile_max)
            if problem.operation == "softmax":
                # No shift: nothing overflows, and terms that underflow would do so anyway.
                shift[(scale * tile_max >= 0) & (scale * tile_max <= UNSHIFTED)] = 0
            tile_sum = _exponentiate(values, shift, out[:, tile], problem.operation, scale)
            # The sum is relative to the shift, which takes the place of the maximum from here on.
            tile_max = np.where(nothing, tile_max, shift)
            if len(tiles) == 1:  # nothing came before: factors of 1, which take long in short rows
                running_sum, running_max = tile_sum, tile_max
            else:
                new_max = np.maximum(running_max, tile_max)
                running_sum = _rescale(running_sum, running_max, new_max, scale) + _rescale(
                    tile_sum, tile_max, new_max, scale
                )
                running_max = new_max
            shifts.append(shift)
        if problem.operation == "logsumexp":
            total = scale * running_max + np.log(running_sum)
            return np.where(np.isinf(running_max), running_max, total)
        if problem.operation == "log_softmax":
            _subtract_logarithm(out, tiles, shifts, running_max, running_sum, scale)
        else:
            _divide_by_sum(out, tiles, shifts, largest, running_max, running_sum, scale)
    return running_sum


def _subtract_logarithm(
    out: Array, tiles: Sequence[slice], shifts: Sequence[Array], maximum: Array, total: Array,
    scale: Any,
) -> None:  # fmt: skip
    """Turn the arguments of exponentials, relative to each tile's shift, into logarithms."""
    # The logarithm of such a row's sum is +inf: elements minus it are -inf, and NaN at +inf.
    unbounded = maximum == np.inf
    for tile, shift in zip(tiles, shifts, strict=True):
        out[:, tile] += np.where(unbounded, -np.inf, scale * (shift - maximum))
        out[:, tile] -= np.where(unbounded, 0, np.log(total))


def _divide_by_sum(
    out: Array, tiles: Sequence[slice], shifts: Sequence[Array], largest: Array, maximum: Array,
    total: Array, scale: Any,
) -> None:  # fmt: skip
    """Divide exponentials, relative to each tile's shift, by sums relative to ``maximum``."""
    reciprocal = takes_reciprocal(out.shape[-1], total, scale * (largest - maximum))
    for tile, shift in zip(tiles, shifts, strict=True):
        divisor = total
        if len(tiles) > 1:
            # A tile of -inf alone has shift 0, maybe far above the row: 0 x e^inf is NaN.
            below = scale * np.minimum(shift - maximum, 0)
            divisor = total / _reach(out[:, tile], below)
        if reciprocal:
            out[:, tile] *= 1 / divisor
        else:
            out[:, tile] /= divisor


def takes_reciprocal(columns: int, total: Array, top: Array) -> bool:
    """Return whether rows of ``columns`` are multiplied by 1 / sum instead of divided by it.

    ``top`` are the largest exponents. A term that is its row's whole sum has to give 1, which a
    product may not.
    """
    if total.dtype == np.float32 or columns < RECIPROCAL_COLUMNS:
        return False
    return bool((total > _ALONE * np.exp(top)).all())


def _exponentiate(
    values: Array, shift: Array, out: Array, operation: Operation, scale: Any
) -> Array:
    """Write exp(scale (values - shift)), of log_softmax its argument; return the sums of rows."""
    if shift.any():
        values = np.subtract(values, shift, out=out)
    if scale != 1:
        values = np.multiply(values, scale, out=out)
    if operation != "log_softmax":
        return np.asarray(np.exp(values, out=out).sum(axis=-1, keepdims=True))
    if values is not out:
        out[...] = values
    return np.asarray(np.exp(values).sum(axis=-1, keepdims=True))


def _reach(tile: Array, below: Array) -> Array:
    """Return e^below, by which a tile is still to be multiplied; e^(below / 2) where it is small.

    Such rows of the tile are multiplied by the other half here: neither of two steps leaves fp32's
    range where the result does not.
    """
    far = below < _FAR
    if far.any():
        below = np.where(far, below / 2, below)
        tile *= np.where(far, np.exp(below), 1)
    return np.asarray(np.exp(below))


def _rescale(total: Array, old_max: Array, new_max: Array, scale: Any) -> Array:
    """Return e^(s (old - new)) total; 0 where no finite value has come yet."""
    return np.where(old_max == -np.inf, 0, np.exp(scale * (old_max - new_max)) * total)


def _numbers(x: Array, problem: SoftmaxProblem) -> Array:
    """Return the elements as numbers in the type of the computation."""
    real: str = problem.precision.real_output
    if problem.input == BF16.name:
        x = bf16_values(x)
    elif problem.input in COMPLEX_KINDS:
        re, im = (part.astype(real, copy=False) for part in (x.real, x.imag))
        return np.asarray(re * re + im * im)
    return x.astype(real, copy=False)


def _operand(x: Array, problem: SoftmaxProblem) -> Array:
    """Return the values rounded as the precision asks, in the accumulator's type."""
    return round_operand(_numbers(x, problem), problem.rounding)
