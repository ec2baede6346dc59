"""Images in blocks of directions through BLAS: NumPy's at every precision, cuBLAS at fp64 and fp32.

With R = X + i Y and w = c + i s, all real, X symmetric and Y antisymmetric,

    w^H R w = c^T X c + s^T (X s + 2 Y c),

three real products of antennas^2, where a complex one has four. Operands are rounded and split as
the kernel does it, so what a precision costs in accuracy can be seen without a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from argand.device import available_cores
from argand.image.cosines import cosines_and_sines
from argand.image.problem import HERMITIAN, SPEED_OF_LIGHT, ImageProblem
from argand.precision import Precision
from argand.rounding import power_of_two, scale_exponents, split
from argand.runtime.quiet import quietly
from argand.runtime.threads import ONE_CORE, ONE_CORE_DOT, on_all_cores

_BLOCK_VALUES = {"numpy": 1 << 18, "cupy": 1 << 24}
"""Weights made at a time: on the CPU they and their products stay in the last-level cache."""
_SHARED_VALUES = 1 << 17
"""Weights of a channel from which threads pay: some 1 ms on one core."""
_COMPARED_VALUES = 1 << 15
"""Numbers of covariances that are compared with their conjugate transposes at a time: 256 KiB of
complex64, which stay in a core's L2 (docs/experiments/2026-11-28-small-calls-on-a-cpu.md)."""
_LEAST_ENTRY = 2.0**-40
"""Entry of a covariance from which `is_small` may return true."""
_LEAST_COLUMNS = 16
"""Columns of a product at least: of fewer it takes twice as long."""


def image_in_blocks(
    problem: ImageProblem, r: Any, x: Any, f: Any, s: Any, out: Any, arrays: Any
) -> Any:
    """Return the power (..., direction) of a problem, whose arguments are checked.

    Args:
        problem: the sizes and the precision.
        r: (..., channel, antenna, antenna).
        x, f, s: positions about the centre (antenna, 3), frequencies, and directions (direction,
            3), in float64 on the host.
        out: where the result goes, or None.
        arrays: NumPy or CuPy, which holds ``r``.

    Memory beside the result: the covariances of one channel, and some tens of MiB of weights.
    """
    kind = problem.dtype
    found = arrays.empty(problem.shape, kind) if out is None else out
    total = arrays.zeros((problem.matrices, problem.directions), kind)
    if problem.matrices:
        r = r.reshape(problem.matrices, *r.shape[-3:])
    step = max(1, _BLOCK_VALUES[arrays.__name__] // max(1, problem.antennas))
    if arrays is np and problem.antennas * problem.directions >= _SHARED_VALUES:
        step = min(step, -(-problem.directions // available_cores()))
    chunks = _chunks(problem, arrays, step)
    place, toward = arrays.asarray(x), arrays.asarray(s.T)
    for channel in range(problem.channels if total.size and problem.antennas else 0):
        forms = [_RealForms(r[chunk, channel], problem.precision, arrays) for chunk in chunks]
        turns = problem.sign * (float(f[channel]) / SPEED_OF_LIGHT)

        def work(start: int, forms: list[_RealForms] = forms, turns: float = turns) -> None:
            some = slice(start, min(start + step, problem.directions))
            parts = _weights(place, toward[:, some], turns, kind, arrays)
            c, s_terms = (_terms(part, problem.precision) for part in parts)
            for chunk, form in zip(chunks, forms, strict=True):
                total[chunk, some] += form.power(c, s_terms)

        starts = range(0, problem.directions, step)
        if arrays is np:  # NumPy would warn of a channel that is not finite
            on_all_cores(partial(quietly, work), starts)
        else:
            for start in starts:
                work(start)
    found[...] = total.reshape(problem.shape)
    return found


def _chunks(problem: ImageProblem, arrays: Any, step: int) -> list[slice]:
    """Return which matrices are multiplied at a time, as rows of one: as many as gain by it."""
    antennas, values = problem.antennas, _BLOCK_VALUES[arrays.__name__]
    columns = min(step, problem.directions)
    together = values // max(1, antennas * max(antennas, columns))
    if arrays is np:  # several cores would wait for each other
        together = min(together, ONE_CORE // max(1, antennas * antennas * columns))
    together = max(1, together)
    return [slice(first, first + together) for first in range(0, problem.matrices, together)]


def require_hermitian(r: Any, arrays: Any) -> None:
    """Raise ValueError where a finite covariance differs from its conjugate transpose.

    It may by `HERMITIAN` of its largest entry, for what rounding leaves.
    """
    if not r.size or (arrays is np and quietly(_are_surely_close, r)):
        return
    channels = r.shape[-3]
    step = max(1, _BLOCK_VALUES[arrays.__name__] * channels // r.size)
    for first in range(0, channels, step):
        some = as_complex(r[..., first : first + step, :, :])
        with np.errstate(all="ignore"):
            if arrays is np and _is_close(some):
                continue
            bad = _is_apart(some, arrays)
        if bad.any():
            channel = int(bad.reshape(-1, bad.shape[-1]).any(axis=0).argmax())
            raise not_hermitian(first + channel)


def _are_surely_close(r: Any) -> bool:
    """Return whether NumPy covariances are Hermitian by what takes least time to tell.

    It looks at so many at a time as stay in a core's cache.
    """
    n = r.shape[-1]
    few = n * (n + 1) // 2 <= ONE_CORE_DOT and (r.flags.c_contiguous or r.size <= _COMPARED_VALUES)
    if r.dtype.kind != "c" or not few:
        return False
    together = max(1, _COMPARED_VALUES // (n * n))
    flat, (lower, upper) = r.reshape(-1, n * n), _triangles(n)
    for first in range(0, len(flat), together):
        some = flat[first : first + together]
        apart = some.take(upper, 1)
        np.conjugate(apart, apart)
        apart -= some.take(lower, 1)
        if not is_small(apart, some[:, 0]):
            return False
    return True


@lru_cache(maxsize=64)
def _triangles(n: int) -> tuple[Any, Any]:
    """Return the flat indices of the lower triangle of an (n, n) matrix and of its transpose."""
    rows, columns = np.tril_indices(n)
    return rows * n + columns, columns * n + rows


@lru_cache(maxsize=64)
def transposed_indices(n: int) -> Any:
    """Return the flat indices of the transpose of an (n, n) matrix.

    A gather by them takes half the time of steps on transposed views.
    """
    return np.arange(n * n).reshape(n, n).T.ravel()


def is_small(apart: Any, entries: Any) -> bool:
    """Return whether the norm of few complex numbers is small beside some matrices' entries.

    It is half of what covariances may be apart from Hermitian, of which each has such an entry.
    False also where squares may underflow.
    """
    least = float(np.minimum.reduce(entries.real, axis=None))
    allowed = (0.5 * HERMITIAN * least) ** 2
    return least >= _LEAST_ENTRY and bool(_square(apart) <= allowed)


def _square(x: Any) -> float:
    """Return the squared norm of complex numbers, of which BLAS adds few up on one core."""
    if x.size <= ONE_CORE_DOT:
        return float(np.vdot(x, x).real)
    return float(np.add.reduce(np.vecdot(x, x).real, None))


def _is_close(r: Any) -> bool:
    """Return whether no NumPy covariance is apart; False where it takes `_is_apart` to tell.

    It compares the largest part of all differences with each matrix's largest part.
    """
    apart = np.abs(_parts(r - r.swapaxes(-1, -2).conj())).max()
    if apart == 0:
        return True
    largest = np.abs(_parts(r)).max(axis=(-1, -2)).min()
    return bool(apart <= math.sqrt(0.5) * HERMITIAN * largest)


def _parts(x: Any) -> Any:
    """Return complex numbers as neighbouring real and imaginary parts."""
    return np.ascontiguousarray(x).view(x.real.dtype)


def _is_apart(r: Any, arrays: Any) -> Any:
    """Return whether each covariance differs from its conjugate transpose by more than it may."""
    apart = r - r.swapaxes(-1, -2).conj()
    # A modulus is at most sqrt(2) times its larger part, and takes longer.
    parts = [arrays.maximum(_largest(x.real, arrays), _largest(x.imag, arrays)) for x in (apart, r)]
    sure = math.sqrt(0.5) * HERMITIAN * parts[1]
    if not (arrays.isfinite(parts[1]) & ~(parts[0] <= sure)).any():
        return arrays.zeros(r.shape[:-2], bool)
    difference, size = (_largest(x, arrays) for x in (apart, r))
    return arrays.isfinite(size) & (difference > HERMITIAN * size)


def _largest(x: Any, arrays: Any) -> Any:
    return arrays.abs(x).max(axis=(-1, -2))


def as_complex(r: Any) -> Any:
    """Return real and integer covariances as complex ones, others as they are."""
    return r.astype(np.result_type(r.dtype, np.complex64), copy=False)


def not_hermitian(channel: int) -> ValueError:
    """Return the error of a covariance that is none."""
    return ValueError(
        f"covariances must be Hermitian, R[a, b] = conj(R[b, a]), but one of channel {channel} "
        f"differs from its conjugate transpose by more than {HERMITIAN:g} of its largest entry"
    )


class _RealForms:
    """Covariances (matrix, antenna, antenna) as X and 2 Y in the terms of a precision."""

    def __init__(self, r: Any, precision: Precision, arrays: Any) -> None:
        kind = precision.real_output
        self._shape = r.shape
        with np.errstate(all="ignore"):
            r = as_complex(r)
            twice = r + r.swapaxes(-1, -2).conj()
            parts = (0.5 * twice.real, twice.imag)
            self._descale: Any = None
            if precision.scaled:
                # The kernel's matrix has twice the real parts, too: one scale for all of it.
                both = np.stack([twice.real, twice.imag], axis=1).astype(kind)
                exponents = scale_exponents(both.reshape(len(r), -1), -1, precision.operand)
                self._descale = power_of_two(-exponents)
                terms = [split(part, precision, exponents[..., None]) for part in parts]
            else:
                own = [arrays.ascontiguousarray(part, kind) for part in parts]
                terms = [_terms(part, precision) for part in own]
        # As rows of one matrix, which takes less time than a product of each.
        self._terms = [[one.reshape(-1, one.shape[-1]) for one in part] for part in terms]
        self._products = precision.products

    def power(self, c: list[Any], s: list[Any]) -> Any:
        """Return the power (matrix, direction) of weights c + i s by terms (antenna, direction)."""
        x, y = self._terms
        left, right = self._product(x, c), self._product(x, s)
        right += self._product(y, c)
        left *= _sum(c)
        right *= _sum(s)
        left += right
        found = left.sum(axis=1)
        return found if self._descale is None else found * self._descale

    def _product(self, matrix: list[Any], weights: list[Any]) -> Any:
        pairs = iter(self._products)
        i, j = next(pairs)
        found = _multiplied(matrix[i], weights[j])
        for i, j in pairs:
            found += _multiplied(matrix[i], weights[j])
        return found.reshape(*self._shape[:2], -1)


def _multiplied(matrix: Any, weights: Any) -> Any:
    """Return a product, by NumPy on several cores in columns that stay on one core of BLAS.

    Its threads would wait for each other at each product.
    """
    columns = ONE_CORE // max(1, matrix.size) // 4 * 4
    whole = not _LEAST_COLUMNS <= columns < weights.shape[1]
    if whole or not isinstance(matrix, np.ndarray) or available_cores() == 1:
        return matrix @ weights
    found = np.empty((len(matrix), weights.shape[1]), matrix.dtype)
    for first in range(0, weights.shape[1], columns):
        some = slice(first, first + columns)
        np.matmul(matrix, weights[:, some], out=found[:, some])
    return found


def _terms(x: Any, precision: Precision) -> list[Any]:
    return [x] if precision.exact_operands else split(x, precision)


def _sum(terms: list[Any]) -> Any:
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = total + term
    return total


def _weights(place: Any, toward: Any, turns: float, kind: str, arrays: Any) -> Iterator[Any]:
    """Return cosines and sines (antenna, direction) of phases, reduced to half a turn in fp64."""
    phase = place @ toward
    phase *= turns
    if arrays is np:
        parts = np.empty((2, *phase.shape), kind)
        cosines_and_sines(phase, *parts)
        return iter(parts)
    phase -= arrays.rint(phase)
    phase *= 2 * math.pi
    phase = phase.astype(kind, copy=False)
    return iter((arrays.cos(phase), arrays.sin(phase)))
