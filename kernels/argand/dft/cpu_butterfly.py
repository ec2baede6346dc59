"""Convolutions by butterflies on the CPU, in fp32: the model of ``cuda/dft/butterfly.cuh``.

It has the same radices, factors and twiddles, but no fused multiply-adds.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from argand.dft.butterfly import ButterflyPlan, frequencies, stage_twiddles
from argand.dft.cpu import HEADROOM, in_blocks
from argand.dft.method import prime_factors
from argand.dft.tables import convolutions, roots
from argand.precision import FP16
from argand.rounding import Array, power_of_two, scale_exponents

if TYPE_CHECKING:
    from argand.dft.problem import DftProblem


def butterfly_dft(problem: DftProblem, x: Array, plan: ButterflyPlan) -> Array:
    """Return the transforms of the rows of x, (rows, N) of complex64, by a plan's convolution."""
    return in_blocks(x, plan.size, lambda rows: _rows(problem, rows, plan))


def _rows(problem: DftProblem, x: Array, plan: ButterflyPlan) -> Array:
    (convolution,) = convolutions(plan.method, inverse=problem.inverse)
    exponent = scale_exponents(x, -1, FP16) - HEADROOM
    scale, undo = power_of_two(exponent), power_of_two(-exponent)
    unit = np.float32(problem.factor * 2.0**-convolution.exponent)
    order = frequencies(plan.radices)
    spectrum = convolution.spectrum[order].astype(np.complex64)
    given = np.zeros((len(x), plan.size), np.complex64)
    if convolution.input_factors is None:
        given[:] = x[:, convolution.input_order] * scale
    else:
        given[:, : plan.length] = x * convolution.input_factors.astype(np.complex64) * scale
    found = forward_stages(given, plan.radices)
    total = found[:, :1].copy()
    values = np.conj(inverse_stages(np.conj(found * spectrum), plan.radices))
    if convolution.output_factors is not None:
        kept = values[:, : plan.length] * unit
        return np.asarray(kept * convolution.output_factors.astype(np.complex64) * undo)
    factor = np.float32(problem.factor)
    rest = x[:, :1] * factor
    out = np.empty_like(x)
    out[:, :1] = total * factor * undo + rest
    out[:, 1:] = values[:, convolution.output_order] * unit * undo + rest
    return out


def forward_stages(x: Array, radices: tuple[int, ...]) -> Array:
    """Apply all stages in place; frequencies come in the order of `argand.dft.butterfly`."""
    for radix, twiddles in zip(radices, _stage_twiddles(radices), strict=True):
        z = x.reshape(len(x), -1, radix, twiddles.shape[1])
        x = (np.stack(butterfly(list(np.moveaxis(z, 2, 0))), 2) * twiddles).reshape(len(x), -1)
    return x


def inverse_stages(x: Array, radices: tuple[int, ...]) -> Array:
    """Return all stages in reverse, from the order of `frequencies` to the natural one."""
    for radix, twiddles in zip(reversed(radices), reversed(_stage_twiddles(radices)), strict=True):
        z = x.reshape(len(x), -1, radix, twiddles.shape[1]) * twiddles
        x = np.stack(butterfly(list(np.moveaxis(z, 2, 0))), 2).reshape(len(x), -1)
    return x


@lru_cache(maxsize=64)
def _stage_twiddles(radices: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the twiddles of each stage, (R, stride); 1 for k = 0 and in the last stage."""
    found, words = [], stage_twiddles(radices)
    for index, radix in enumerate(radices[:-1]):
        stride = int(np.prod(radices[index + 1 :]))
        own, words = np.split(words, [(radix - 1) * stride])
        ones = np.ones((1, stride), np.complex64)
        found.append(np.concatenate([ones, own.reshape(radix - 1, stride)]))
    return (*found, np.ones((radices[-1], 1), np.complex64))


def along(work: Array, axis: int) -> Array:
    """Apply butterflies along an axis."""
    return np.stack(butterfly(list(np.moveaxis(work, axis, 0))), axis)


def butterfly(z: list[Array]) -> list[Array]:
    """Return the transforms of N arrays of complex64: X_k = sum over n of W_N^(n k) z_n."""
    size, first = len(z), first_factor(len(z))
    if size == 1:
        return z
    if size == 2:
        return [z[0] + z[1], z[0] - z[1]]
    if first == 1:
        return _prime(z)
    return _coprime_factors(z, first) if gcd(first, size // first) == 1 else _two_factors(z, first)


def first_factor(size: int) -> int:
    """Return the first of the two factors of a butterfly; 1 for a prime.

    Half the exponent of a power of two, else the part of the smallest prime.
    """
    primes = prime_factors(size)
    if len(primes) < 2:
        return 1
    part = int(primes[0] ** primes.count(primes[0]))
    if part < size:
        return part
    return int(primes[0] ** (len(primes) // 2)) if primes[0] == 2 else primes[0]


@lru_cache(maxsize=64)
def _roots(size: int) -> Array:
    return roots(np.arange(size), size).astype(np.complex64)


def _prime(z: list[Array]) -> list[Array]:
    size, half, twiddles = len(z), len(z) // 2, _roots(len(z))
    even = [z[k] + z[size - k] for k in range(1, half + 1)]
    odd = [z[k] - z[size - k] for k in range(1, half + 1)]
    found = [z[0], *z[1:]]
    for n in range(1, half + 1):
        p, q = z[0], np.zeros_like(z[0])
        for k in range(1, half + 1):
            twiddle = twiddles[n * k % size]
            p, q = p + even[k - 1] * twiddle.real, q + odd[k - 1] * -twiddle.imag
        found[n], found[size - n] = p - np.complex64(1j) * q, p + np.complex64(1j) * q
    for part in even:
        found[0] = found[0] + part
    return found


def _two_factors(z: list[Array], first: int) -> list[Array]:
    """Return a transform of N = A B by n = B a + b, k = k_a + A k_b and twiddles W_N^(b k_a)."""
    size, second, twiddles = len(z), len(z) // first, _roots(len(z))
    columns = [butterfly(z[b::second]) for b in range(second)]
    found = list(z)
    for k in range(first):
        middle = [columns[b][k] * twiddles[b * k % size] if b * k else columns[b][k]
                  for b in range(second)]  # fmt: skip
        found[k::first] = butterfly(middle)
    return found


def _coprime_factors(z: list[Array], first: int) -> list[Array]:
    """Return a transform of coprime A and B, by n = B a + A b and the remainders of k."""
    size, second = len(z), len(z) // first
    of_first = second * pow(second, -1, first)
    of_second = first * pow(first, -1, second)
    columns = [
        butterfly([z[(second * a + first * b) % size] for a in range(first)]) for b in range(second)
    ]
    found = list(z)
    for k in range(first):
        for j, value in enumerate(butterfly([column[k] for column in columns])):
            found[(of_first * k + of_second * j) % size] = value
    return found
