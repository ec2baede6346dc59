"""The constants of transforms, in fp64: roots of unity, folded matrices, convolutions' spectra."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.dft.method import Method, generator

Array = npt.NDArray[Any]


def roots(numbers: Array, length: int, *, inverse: bool = False) -> Array:
    """Return exp(-+2 pi i n / length) for integers n, complex128.

    Angles are reduced as integers, and multiples of a quarter turn are exact.
    """
    turns = np.asarray(numbers, np.int64) % length
    angle = (2 * np.pi / length) * turns
    found = np.cos(angle) - (-1j if inverse else 1j) * np.sin(angle)
    for quarter, value in enumerate((1, -1j, -1, 1j)):
        found[4 * turns == quarter * length] = np.conj(value) if inverse else value
    return np.asarray(found)


def folded_matrices(length: int) -> tuple[Array, Array]:
    """Return C[k - 1, n - 1] = cos(2 pi k n / L) and S, the same of sin, for k, n to L / 2.

    With e_k = x_k + x_(L-k) and o_k = x_k - x_(L-k) (for even L, e and o of L / 2 are x itself),

        X_n = x_0 + (e C)_n - i (o S)_n,   X_(L-n) = x_0 + (e C)_n + i (o S)_n,   X_0 = x_0 + sum e.
    """
    numbers = np.arange(1, length // 2 + 1)
    found = roots(np.outer(numbers, numbers), length)
    return found.real, -found.imag


def twiddles(first: int, second: int) -> Array:
    """Return W^(k1 n2) of the length N1 N2 as (N1, N2), complex128."""
    numbers = np.outer(np.arange(first, dtype=np.int64), np.arange(second))
    return roots(numbers, first * second)


def dimensions(first: int, second: int) -> tuple[Array, Array]:
    """Return where numbers and their transform stand in two dimensions without a common divisor.

    For (n1, n2) and (k1, k2), (N1, N2) each: n = n1 modulo N1 and n2 modulo N2; k = N2 k1 + N1 k2,
    so that W_N^(n k) = W_N1^(n1 k1) W_N2^(n2 k2).
    """
    size = first * second
    numbers = np.empty((first, second), np.int64)
    every = np.arange(size)
    numbers[every % first, every % second] = every
    k1, k2 = np.arange(first)[:, None], np.arange(second)
    return numbers, (second * k1 + first * k2) % size


@dataclass(frozen=True, eq=False)
class Convolution:
    """A transform of length N as a cyclic convolution of length M; see `argand.dft.method`.

    Attributes:
        input_order: (N - separate,) indices: element j of the convolution is x[input_order[j]].
        input_factors: (N,) factors of x; None for no factors.
        spectrum: (M,) the transform of the other sequence over M, complex128, times 2^exponent,
            its largest modulus in (1/2, 1].
        exponent: the exponent of the spectrum's scale.
        output_order: (N - separate,) indices: element separate + k of the result is that of the
            convolution.
        output_factors: (N,) factors of the result; None for no factors.
        separate: 1 where element 0 of x is added to every element and the result's own element 0
            is the sum of x (Rader), else 0.
    """

    input_order: Array
    input_factors: Array | None
    spectrum: Array
    exponent: int
    output_order: Array
    output_factors: Array | None
    separate: int


@lru_cache(maxsize=16)
def convolutions(method: Method, *, inverse: bool = False) -> tuple[Convolution, ...]:
    """Return the convolutions of a rader or bluestein method; their results are added."""
    if method.kind == "rader":
        return (_rader(method.length, inverse),)
    size = method.parts[0].length
    if method.halves == 1:
        return (_bluestein(method.length, size, inverse),)
    return tuple(_half_of_bluestein(method.length, size, inverse, half) for half in (0, 1))


def _rader(prime: int, inverse: bool) -> Convolution:
    powers = np.empty(prime - 1, np.int64)
    step, value = generator(prime), 1
    for index in range(prime - 1):
        powers[index] = value
        value = value * step % prime
    backward = powers[-np.arange(prime - 1)]  # g^-q
    spectrum, exponent = _scaled(np.fft.fft(roots(backward, prime, inverse=inverse)))
    where = np.empty(prime, np.int64)
    where[backward] = np.arange(prime - 1)
    return Convolution(powers, None, spectrum, exponent, where[1:], None, 1)


def _bluestein(length: int, convolved: int, inverse: bool) -> Convolution:
    numbers = np.arange(length, dtype=np.int64)
    chirp = roots(numbers * numbers, 2 * length, inverse=inverse)
    sequence = np.zeros(convolved, np.complex128)
    sequence[:length] = chirp.conj()
    sequence[convolved - length + 1 :] = chirp[:0:-1].conj()
    spectrum, exponent = _scaled(np.fft.fft(sequence))
    return Convolution(numbers, chirp, spectrum, exponent, numbers, chirp, 0)


def _half_of_bluestein(length: int, convolved: int, inverse: bool, half: int) -> Convolution:
    """Return the convolution modulo x^M - 1 or x^M + 1 over 2; the latter's sequences are twisted.

    x^-m is x^(2 M - m), so +-x^(M - m). The roots of x^M + 1 are those of x^M - 1 times
    exp(-i pi / M), whose powers make a cyclic convolution of a negacyclic one.
    """
    numbers = np.arange(length, dtype=np.int64)
    chirp = roots(numbers * numbers, 2 * length, inverse=inverse)
    twist = roots(half * np.arange(convolved), 2 * convolved)
    sequence = np.zeros(convolved, np.complex128)
    sequence[:length] = chirp.conj()
    sequence[convolved - length + 1 :] += (1 - 2 * half) * chirp[:0:-1].conj()
    spectrum, exponent = _scaled(np.fft.fft(sequence * twist) / 2)
    kept = twist[:length]
    return Convolution(numbers, chirp * kept, spectrum, exponent, numbers, chirp * kept.conj(), 0)


def _scaled(spectrum: Array) -> tuple[Array, int]:
    """Return the spectrum over its length, scaled so that its largest modulus is in (1/2, 1]."""
    spectrum = spectrum / len(spectrum)
    exponent = -int(np.ceil(np.log2(np.abs(spectrum).max())))
    return np.ldexp(spectrum.view(np.float64), exponent).view(np.complex128), exponent
