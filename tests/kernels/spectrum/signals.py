"""Signals of random samples, their spectral estimates by scipy.signal in fp64, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from argand import PRECISIONS, SpectrumProblem, pairs
from argand.spectrum.problem import spectrum_problem
from argand.spectrum.window import window_of
from scipy import signal

from workflow.accuracy import Accuracy
from workflow.accuracy.spectra_accuracy import assess_spectra, spectra_reference
from workflow.accuracy.spectra_bounds import BLOCKS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Signal:
    """Samples and how their power is estimated; integer pairs have a last axis of 2."""

    given: Array
    length: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> bool:
        return self.given.dtype.kind == "i" and self.given.ndim > 1 and self.given.shape[-1] == 2

    @property
    def samples(self) -> Array:
        """Complex or real, in fp64, or the conjugates that the options ask for."""
        found = self.given.astype(complex if self.given.dtype.kind == "c" else float)
        if self.pairs:
            found = self.given[..., 0] + 1j * self.given[..., 1]
        return found.conj() if self.options.get("conjugate") else found

    def operand(self, arrays: Any = np) -> Any:
        """The samples as an argument, on the device of an array module."""
        given = arrays.asarray(self.given)
        return pairs(given) if self.pairs else given

    def problem(self, precision: str) -> SpectrumProblem:
        x = self.samples
        return spectrum_problem(
            x.shape, length=self.length, overlap=self.options.get("overlap"),
            average=self.options.get("average", 1), real=x.dtype.kind == "f",
            onesided=self.options.get("onesided"), precision=PRECISIONS[precision],
            detrend=self.options.get("detrend"),
        )  # fmt: skip

    @cached_property
    def power(self) -> Array:
        """By scipy.signal.spectrogram, means of whole groups: (..., groups, bins)."""
        problem, x = self.problem("fp64"), self.samples
        if x.shape[-1] < self.length:
            return np.zeros(problem.shape)
        with np.errstate(all="ignore"):  # samples may be infinite
            *_, found = signal.spectrogram(
                x, self.options.get("sample_rate", 1.0), self.window, self.length,
                problem.overlap, detrend=problem.detrend or False,
                return_onesided=problem.onesided,
                scaling=self.options.get("scaling", "density"),
            )  # fmt: skip
        segments = found.swapaxes(-1, -2)[..., : problem.segments, :]
        shape = (*problem.leading, problem.groups, problem.average, problem.bins)
        return np.asarray(segments.reshape(shape).mean(axis=-2))

    @property
    def window(self) -> Array:
        return window_of(self.options.get("window", "hann"), self.length)

    def assessed(self, found: Array, precision: str, backend: str, ran: str = BLOCKS) -> Accuracy:
        """The verdict on a result, by the bound of what ran."""
        problem = self.problem(precision)
        reference = spectra_reference(
            self.samples, self.window, problem, scaling=self.options.get("scaling", "density"),
            sample_rate=self.options.get("sample_rate", 1.0),
        )  # fmt: skip
        shaped = found.reshape(reference.power.shape)
        return assess_spectra(reference, shaped, PRECISIONS[precision], backend=backend, ran=ran)


def drawn(
    length: int, segments: int, *, kind: str = "complex64", leading: tuple[int, ...] = (),
    spare: int = 0, seed: int = 0, tone: float = 0.0, rise: float = 0.0, **options: Any,
) -> Signal:  # fmt: skip
    """A signal of so many segments; ``kind`` is a type, or int8 or int16 pairs as ``int8 pairs``.

    ``tone`` is the amplitude of a complex exponential between two bins, ``rise`` what each sample
    has more than the one before it.
    """
    rng = np.random.default_rng(seed)
    overlap = options.get("overlap", length // 2)
    samples = max(0, length + (segments - 1) * (length - overlap)) + spare
    name, _, of = kind.partition(" ")
    dtype = np.dtype(name)
    shape = (*leading, samples, *[2] * bool(of))
    if dtype.kind == "i":
        info = np.iinfo(dtype)
        return Signal(rng.integers(info.min, info.max + 1, shape).astype(dtype), length, options)
    wave = tone * np.exp(2j * np.pi * (length // 3 + 0.5) / length * np.arange(samples))
    x = rng.standard_normal((*shape, 2)).view(complex)[..., 0] + wave
    x += (1 + 0.5j) * rise * np.arange(samples)
    return Signal((x if dtype.kind == "c" else x.real).astype(dtype), length, options)


SIGNALS = {
    "a sample": drawn(1, 5, overlap=0, window="boxcar", leading=(2,)),
    "a real sample": drawn(1, 5, overlap=0, window="boxcar", kind="float32", leading=(2,), seed=29),
    "two samples": drawn(2, 9, average=3, seed=1),
    "one segment": drawn(16, 1, overlap=5, seed=2),
    "spectrogram": drawn(64, 40, leading=(2, 3), spare=7, scaling="spectrum", seed=3),
    "whole": drawn(64, 300, average="all", leading=(2,), sample_rate=48e3, seed=4),
    "groups": drawn(128, 50, average=7, overlap=100, kind="complex128", seed=5),
    "no overlap": drawn(100, 21, average=4, overlap=0, window=("kaiser", 9.0), seed=6),
    "a prime": drawn(37, 30, average=2, overlap=11, leading=(2,), seed=7),
    "real": drawn(64, 33, average=3, kind="float32", leading=(2,), seed=8),
    "real, both sides": drawn(32, 33, kind="float32", onesided=False, average=2, seed=9),
    "odd and real": drawn(15, 40, average=5, kind="float64", seed=10),
    "odd, real, both sides": drawn(15, 40, kind="float64", onesided=False, seed=11),
    "int8 pairs": drawn(32, 19, average=2, kind="int8 pairs", leading=(3,), seed=12),
    "real int8": drawn(32, 19, overlap=31, kind="int8", window="flattop", seed=13),
    "int16 pairs": drawn(20, 19, average="all", kind="int16 pairs", seed=14),
    "strong tone": drawn(256, 30, average=10, tone=1e3, seed=15),
    "long group": drawn(1024, 150, average="all", seed=16),
    "real, long group": drawn(1024, 150, average=75, kind="float32", seed=17),
    "less means": drawn(64, 40, average=3, rise=0.1, leading=(2,), detrend="constant", seed=18),
    "less lines": drawn(128, 30, overlap=32, rise=3.0, detrend="linear", seed=19),
    "real, less lines": drawn(
        64, 33, average=3, kind="float32", rise=1.0, leading=(2,), detrend="linear", seed=20
    ),
    "int8 pairs, less means": drawn(
        1024, 19, average="all", kind="int8 pairs", leading=(2,), detrend="constant", seed=21
    ),
    "conjugates": drawn(64, 40, average=3, leading=(2,), conjugate=True, seed=23),
    "conjugates, less lines": drawn(
        128, 30, average="all", rise=0.1, detrend="linear", conjugate=True, seed=24
    ),
    "conjugate int8 pairs": drawn(
        1024, 19, kind="int8 pairs", detrend="constant", conjugate=True, seed=25
    ),
    "a prime of conjugates": drawn(37, 30, average=2, conjugate=True, kind="complex128", seed=26),
    "real, which are their conjugates": drawn(32, 20, kind="float32", conjugate=True, seed=27),
    "real int16, less lines": drawn(37, 19, average=2, kind="int16", detrend="linear", seed=22),
}
