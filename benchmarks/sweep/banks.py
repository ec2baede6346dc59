"""Filter banks of drawn or given channels, taps, oversampling and types of samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, ChanneliseProblem, Device, Precision, channelise
from argand.channelise.problem import oversampling_of
from argand.precision import any_precision

from benchmarks.harness.measuring import kernels_of
from benchmarks.harness.samples import on_host
from benchmarks.harness.signals import (
    INPUTS,
    Input,
    as_argument,
    as_floats,
    drawn_samples,
)
from benchmarks.peers import Candidate
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.libraries import whole_calls
from workflow.accuracy import Accuracy, worst_of
from workflow.accuracy.channelise_accuracy import assess_channelise, channelise_reference

_COMPONENTS = {"cuda": 1 << 26, "cpu": 1 << 20}
"""Components of samples in all."""
_OVERSAMPLINGS = tuple(map(Fraction, ("4/3", "8/7", "32/27", "5/4", "3/2", "2")))
_CHECKED_VALUES = 1 << 17, 1 << 19
"""Windowed samples that are compared with fp64 at either end of a row, at least one spectrum, of
drawn and of given sizes."""


class BankCase(Case):
    """One filter bank over rows of samples of one type; without ``components``, of a drawn size.

    ``oversampling`` is all that `oversampling_of` reads.
    """

    def __init__(
        self, channels: int, taps: int, oversampling: Fraction, rows: int, input: Input,
        components: int | None = None, precisions: Sequence[str] = ("fp32",),
    ) -> None:  # fmt: skip
        if components is not None and components < 2 * rows * channels * taps:
            least = 2 * rows * channels * taps
            raise ValueError(f"components must be at least {least}, a spectrum a row")
        self._channels, self._taps = channels, taps
        self._oversampling = oversampling_of(oversampling, channels)
        self._rows, self._input, self._components = rows, input, components
        self._precisions = [any_precision(name) for name in precisions]
        self.operation = "channelise"
        self.shape = f"{rows} rows, {channels} channels x {taps} taps"
        self.kind = f"{input}, oversampling {self._oversampling}"
        self.flops = 0.0
        self.bytes_moved = 0.0
        from scipy.signal import firwin  # takes half a second, and most sweeps draw no banks

        self._coefficients = firwin(channels * taps, 1 / channels)

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return random samples of the type, integers as (row, time, 2) or (row, time)."""
        components = self._components or _COMPONENTS[device.backend]
        x = drawn_samples(self._input, self._rows, components, seed, device)
        problem = self._problem(x, PRECISIONS["fp32"])
        self.flops = problem.flops
        self.bytes_moved = x.nbytes + 8.0 * np.prod(problem.shape)
        return (x,)

    def _problem(self, x: Any, row: Precision) -> ChanneliseProblem:
        real = x.ndim == 2 and x.dtype.kind != "c"
        return ChanneliseProblem(
            (self._rows,), x.shape[1], self._channels, self._taps, self._oversampling, real, row
        )

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.channelise` at fp32, or at the precisions that were given."""

        def one(row: Precision) -> Candidate:
            call = partial(
                channelise, channels=self._channels, taps=self._taps, window=self._coefficients,
                oversampling=self._oversampling, precision=row,
            )  # fmt: skip
            return Candidate(
                "argand", row, "filter bank", lambda x: (as_argument(x),), call,
                chosen=kernels_of(call),
            )  # fmt: skip

        return [one(row) for row in self._precisions]

    def peers(self, device: Device) -> list[Candidate]:
        """Return a filter and a transform of each library, of samples that it makes floats."""
        row = PRECISIONS["fp32"]
        return whole_calls("channelise", device.backend, row, lambda x: (x,), self._by_peer)

    def _by_peer(self, compute: Any, x: Any) -> Any:
        return compute(
            as_floats(x), self._coefficients, self._channels, oversampling=self._oversampling
        )

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares the first and the last row's last spectra with fp64."""
        (x,) = operands
        problem = self._problem(x, PRECISIONS["fp32"])
        length, hop = self._channels * self._taps, problem.hop
        # Spectra that start whole frames after the first sample have its phases.
        cycle = problem.phases
        count = min(problem.spectra, max(cycle, self.sampled(*_CHECKED_VALUES) // length))
        last = (problem.spectra - count) // cycle * cycle
        places = {"first": (0, 0), "last": (self._rows - 1, last)}
        references = {}
        for name, (row, first) in places.items():
            part = on_host(x[row, first * hop : (first + count - 1) * hop + length])
            part = part[:, 0] + 1j * part[:, 1].astype(float) if part.ndim == 2 else part
            references[name] = channelise_reference(
                part, self._coefficients, self._channels, self._oversampling
            )

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            ran = ""
            if candidate.name == "argand" and device.backend == "cuda":
                from argand.channelise.gpu import algorithm

                ran = algorithm(self._problem(x, candidate.precision), device)[1]
            parts = {
                name: assess_channelise(
                    references[name], on_host(result[row, first : first + count])[None],
                    candidate.precision, backend=device.backend, ran=ran,
                )
                for name, (row, first) in places.items()
            }  # fmt: skip
            return worst_of(parts)

        return assess


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 8 to 4096 channels, 4 to 32 taps and 1 to 64 rows, log-uniform, of every type.

    Every other number of channels is the product of 2, 3 and 5 below the one drawn; a third of the
    banks are oversampled, by a fraction that the channels allow.
    """
    found: list[Case] = []
    smooth = sorted(
        2**a * 3**b * 5**c for a in range(13) for b in range(8) for c in range(6)
        if 8 <= 2**a * 3**b * 5**c <= 4096
    )  # fmt: skip
    for number in range(cases):
        channels = int(sizes(rng, 8, 4096, (1,))[0])
        if number % 2:
            channels = max(one for one in smooth if one <= channels)
        taps, rows = int(sizes(rng, 4, 32, (1,))[0]), int(sizes(rng, 1, 64, (1,))[0])
        kind = INPUTS[int(rng.integers(len(INPUTS)))]
        fitting = [one for one in _OVERSAMPLINGS if channels % one.numerator == 0]
        oversampling = Fraction(1)
        if rng.random() < 1 / 3 and fitting:
            oversampling = fitting[int(rng.integers(len(fitting)))]
        found.append(BankCase(channels, taps, oversampling, rows, kind))
    return found
