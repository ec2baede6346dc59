"""Images of few antennas on the CPU at fp64 and fp32: channels and matrices together.

With R = X + i Y and z = [c; s] of the weights c + i s the power is z^T M z, M = [[X, -Y], [Y, X]]:
that of R's Hermitian part. M z takes four real products of antennas^2, where `argand.image.blocks`
takes three, and in return a third of the steps over arrays. With so few directions that
making M takes longer than the steps it saves, R w is a complex product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.cpu_cosines import cosines_and_sines
from argand.image.problem import SPEED_OF_LIGHT, ImageProblem
from argand.runtime.cpu.numpy_blas import has_avx512_kernels
from argand.runtime.cpu.one_core import numpy_on_one_core
from argand.runtime.cpu.quiet import quietly
from argand.runtime.cpu.threads import ONE_CORE, SEVERAL_CORES, on_all_cores

Weights = Callable[[Any, str], Any]
"""Returns weights of phases in turns."""
Power = Callable[[Any, Any], Any]
"""Returns the power of covariances by weights."""
_FEW_ANTENNAS = 64
"""Antennas up to which the steps take longer than the products that they save."""
_LARGE_MATRIX = 40
"""Antennas from which M and what it is made of leave a core's L1, 32 to 48 KiB."""
_MAX_DIRECTIONS = {"float32": 2, "float64": 16}
"""Directions up to which making M takes longer than the steps it saves, as a multiple of M's rows,
by kernels of BLAS other than those for AVX-512, whose small real products take less time."""
_BLOCK_VALUES = 1 << 17
"""Numbers of M z that are made at a time: they stay in a core's cache."""
_SHARED_VALUES, _APART_VALUES = 1 << 18, 1 << 20
"""Weights of all channels, and numbers of M z of all covariances, from which threads pay: some 500
us on one core, and 2 ms. Behind products that BLAS has shared, a thread waits some 600 us for those
of BLAS, which spin, and has half a core."""


def has_few_antennas(problem: ImageProblem) -> bool:
    """Return whether `few_antennas_image` takes less time than blocks."""
    few = 0 < problem.antennas <= _FEW_ANTENNAS
    return few and problem.precision.exact_operands and problem.channels * problem.matrices > 0


def few_antennas_image(problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, out: Any) -> Any:
    """Return the power (..., direction) of a problem; arguments as in `image_in_blocks`."""
    r = r.reshape(problem.matrices, *r.shape[-3:]).swapaxes(0, 1)
    turns = (f * (problem.sign / SPEED_OF_LIGHT))[:, None, None]
    rows = 2 * problem.antennas
    few = problem.directions <= rows * _most_directions(problem)
    weights, power_of = (_complex_weights, _complex_power) if few else (_weights, _power)
    values = problem.matrices * problem.channels * rows * problem.directions
    compute = _in_one_block if values <= _BLOCK_VALUES else _in_blocks
    if _is_on_one_core(problem):
        compute = partial(numpy_on_one_core, compute)
    found = compute(problem, weights, power_of, r, x, turns, s).reshape(problem.shape)
    if out is None:
        return found
    out[...] = found
    return out


def _most_directions(problem: ImageProblem) -> int:
    """Return `_MAX_DIRECTIONS` of a problem, more where M leaves the nearest cache."""
    if has_avx512_kernels():
        return 1 if problem.antennas < _LARGE_MATRIX else 2
    return _MAX_DIRECTIONS[problem.dtype]


def _is_on_one_core(problem: ImageProblem) -> bool:
    """Return whether NumPy's BLAS is to take one core for products that it would share.

    Threads of ours have one each, and those of BLAS would wait for each other at each product.
    """
    several = _product(problem) > ONE_CORE and available_cores() > 1
    return several and not _is_threaded(problem)


def _is_threaded(problem: ImageProblem) -> bool:
    """Return whether threads of BLAS share each product, however many covariances there are."""
    large = _product(problem) >= SEVERAL_CORES
    return large and available_cores() > 1 and not _is_shared(problem)


def _product(problem: ImageProblem) -> int:
    """Return the real multiplications of a covariance by all weights of a channel."""
    return 4 * problem.antennas**2 * problem.directions


def _is_shared(problem: ImageProblem) -> bool:
    """Return whether threads of ours share the directions."""
    return 2 * problem.antennas * problem.channels * problem.directions >= _SHARED_VALUES


def _is_apart(problem: ImageProblem) -> bool:
    """Return whether threads of ours share the covariances.

    There are many of few weights. A covariance's product must not be cut otherwise than it is
    alone.
    """
    all_weights = 2 * problem.antennas * problem.channels * problem.directions
    many = all_weights * problem.matrices >= _APART_VALUES
    return many and not (_is_shared(problem) or _is_threaded(problem))


def _in_one_block(
    problem: ImageProblem, weights: Weights, power_of: Power, r: Any, x: Any, turns: Any, s: Any
) -> Any:
    """Return the power (matrix, direction)."""

    def power() -> Any:
        return power_of(r, weights((x @ s.T) * turns, problem.dtype))

    return quietly(power)


def _in_blocks(
    problem: ImageProblem, weights: Weights, power_of: Power, r: Any, x: Any, turns: Any, s: Any
) -> Any:
    """Return the power (matrix, direction)."""
    found = np.empty((problem.matrices, problem.directions), problem.dtype)
    rows, cores = 2 * problem.antennas, available_cores()
    shared, apart = _is_shared(problem), _is_apart(problem)
    each = -(-problem.directions // (cores if shared else 1))
    step = max(1, min(each, _BLOCK_VALUES // rows))
    # The order of a sum over channels must not depend on how many covariances there are.
    channels = min(problem.channels, max(1, _BLOCK_VALUES // (rows * step)))
    together = max(1, _BLOCK_VALUES // (rows * step * channels))
    if apart:
        together = min(together, -(-problem.matrices // cores))
    chunks = range(0, problem.matrices, together)

    def add(z: Any, some: slice, first: int, one: int) -> None:
        chunk = slice(one, one + together)
        power = power_of(r[first : first + channels, chunk], z)
        if first:
            power += found[chunk, some]
        found[chunk, some] = power

    def work(start: int) -> None:
        some = slice(start, start + step)
        delays = x @ s[some].T
        for first in range(0, problem.channels, channels):
            z = weights(delays * turns[first : first + channels], problem.dtype)
            if apart:
                on_all_cores(partial(quietly, add, z, some, first), chunks)
            else:
                for one in chunks:
                    add(z, some, first, one)

    starts = range(0, problem.directions, step)
    if shared:
        on_all_cores(partial(quietly, work), starts)
    else:
        for start in starts:
            quietly(work, start)
    return found


def _weights(turns: Any, kind: str) -> Any:
    """Return cosines and below them sines (channel, 2 antennas, direction) of phases in turns."""
    channels, antennas, directions = turns.shape
    z = np.empty((channels, 2 * antennas, directions), kind)
    cosines_and_sines(turns, z[:, :antennas], z[:, antennas:])
    return z


def _power(r: Any, z: Any) -> Any:
    """Return the power (matrix, direction) of (channel, matrix, antenna, antenna), summed.

    Each covariance is a product of its own: BLAS sums a row of a larger one in an order that
    depends on how many rows there are.
    """
    channels, matrices, n, _ = r.shape
    m = np.empty((channels, matrices, 2 * n, 2 * n), z.dtype)
    m[..., :n, :n] = m[..., n:, n:] = r.real
    m[..., n:, :n] = r.imag
    np.negative(m[..., n:, :n], out=m[..., :n, n:])
    return _summed(np.matmul(m, z[:, None]), z)


def _complex_weights(turns: Any, kind: str) -> Any:
    """Return weights (channel, antenna, direction) of phases in turns."""
    w = np.empty(turns.shape, np.result_type(kind, np.complex64))
    cosines_and_sines(turns, w.real, w.imag)
    return w


def _complex_power(r: Any, w: Any) -> Any:
    """Return the power as `_power` does, by complex products."""
    formed = np.matmul(r.astype(w.dtype, copy=False), w[:, None])
    sums = _summed(formed.view(w.real.dtype), w.view(w.real.dtype))
    return sums[:, ::2] + sums[:, 1::2]


def _summed(formed: Any, weights: Any) -> Any:
    """Return the sums (matrix, direction) of products (channel, matrix, row, direction) by weights.

    One step multiplies and adds a row at a time, so the products are never in memory.
    """
    sums = np.einsum("cmap,cap->cmp", formed, weights)
    return np.add.reduce(sums, 0) if len(sums) > 1 else sums[0]
