"""Filter banks of random samples, their spectra by a direct sum in fp64, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from argand import PRECISIONS, pairs
from scipy.signal import firwin

from workflow.accuracy.channelise_bounds import channelise_bound

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Bank:
    """Samples and how they are channelised; integer pairs have a last axis of 2."""

    given: Array
    channels: int
    taps: int
    oversampling: Fraction
    coefficients: Array
    conjugate: bool = False

    @property
    def samples(self) -> Array:
        """Complex or real, in fp64; of a conjugate bank the conjugates."""
        found = self.given.astype(complex if self.given.dtype.kind == "c" else float)
        if self.pairs:
            found = self.given[..., 0] + 1j * self.given[..., 1]
        return found.conj() if self.conjugate else found

    @property
    def pairs(self) -> bool:
        return self.given.dtype.kind == "i" and self.given.ndim > 1 and self.given.shape[-1] == 2

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `argand.channelise` beside the samples."""
        return {
            "channels": self.channels, "taps": self.taps, "window": self.coefficients,
            "oversampling": self.oversampling, "conjugate": self.conjugate,
        }  # fmt: skip

    def operand(self, arrays: Any = np) -> Any:
        """The samples as an argument, on the device of an array module."""
        given = arrays.asarray(self.given)
        return pairs(given) if self.pairs else given

    @cached_property
    def spectra(self) -> Array:
        """The direct sum, (..., spectra, channels)."""
        x, m, length = self.samples, self.channels, len(self.coefficients)
        hop = int(m / self.oversampling)
        count = max(0, (x.shape[-1] - length) // hop + 1)
        bins = np.arange(m // 2 + 1 if x.dtype.kind == "f" else m)
        roots = np.exp(-2j * np.pi * np.arange(m) / m)
        found = np.zeros((*x.shape[:-1], count, len(bins)), complex)
        phases = {}
        for s in range(count):
            n = s * hop + np.arange(length)
            start = s * hop % m
            if start not in phases:
                phases[start] = roots[np.outer(n % m, bins) % m]
            found[..., s, :] = (self.coefficients * x[..., n]) @ phases[start]
        return found

    def excess(self, found: Array, precision: str, backend: str, ran: str = "") -> float:
        """The largest error of a spectrum over its bound."""
        x, m, length = np.abs(self.samples), self.channels, len(self.coefficients)
        hop = int(m / self.oversampling)
        truth, h = self.spectra, np.abs(self.coefficients)
        real = self.samples.dtype.kind == "f"
        bound = channelise_bound(PRECISIONS[precision], m, self.taps, backend, real=real, ran=ran)
        worst = 0.0
        for s in range(truth.shape[-2]):
            moduli = (h * x[..., s * hop : s * hop + length]).reshape(*x.shape[:-1], self.taps, m)
            size = np.sqrt(m) * np.linalg.norm(moduli.sum(axis=-2), axis=-1)
            norm = np.linalg.norm(truth[..., s, :], axis=-1) * (2**0.5 if real else 1)
            error = np.linalg.norm(found[..., s, :] - truth[..., s, :], axis=-1)
            error = error * (2**0.5 if real else 1)
            worst = max(worst, float(np.max(error / bound.allowed(size, norm), initial=0)))
        return worst


def bank(
    channels: int, taps: int, spectra: int, *, oversampling: Any = 1, kind: str = "complex64",
    leading: tuple[int, ...] = (), spare: int = 0, seed: int = 0,
) -> Bank:  # fmt: skip
    """A bank of so many spectra; ``kind`` is a type, or int8 or int16 pairs as ``int8 pairs``."""
    rng = np.random.default_rng(seed)
    fraction = Fraction(oversampling)
    hop = int(channels / fraction)
    samples = channels * taps + (spectra - 1) * hop + spare
    name, _, of = kind.partition(" ")
    dtype = np.dtype(name)
    shape = (*leading, samples, *[2] * bool(of))
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        given = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    elif dtype.kind == "c":
        given = rng.standard_normal((*shape, 2)).view(complex)[..., 0].astype(dtype)
    else:
        given = rng.standard_normal(shape).astype(dtype)
    return Bank(given, channels, taps, fraction, firwin(channels * taps, 1 / channels))
