"""Spectral estimates of drawn or given lengths, means and types of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, spectrum
from argand.precision import any_precision
from argand.spectrum.problem import WHOLE, SpectrumProblem, spectrum_problem
from argand.spectrum.window import window_of

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
from workflow.accuracy import Accuracy
from workflow.accuracy.spectra_accuracy import assess_spectra, spectra_reference
from workflow.accuracy.spectra_bounds import BLOCKS

_COMPONENTS = {"cuda": 1 << 25, "cpu": 1 << 18}
"""Components of samples in all."""
_CHECKED_VALUES = 1 << 18, 1 << 22
"""Windowed samples of groups that are compared with fp64, of drawn and given sizes; of one group
all."""
_UNFUSED = "unfused"


class SpectrumCase(Case):
    """Means of powers of windowed segments of rows of samples; without ``average``, of all."""

    def __init__(
        self, length: int, rows: int, input: Input, overlap: int = 0, average: int | None = None,
        components: int | None = None, precisions: Sequence[str] = ("fp32",),
    ) -> None:  # fmt: skip
        self._length, self._overlap, self._average = length, overlap, average or WHOLE
        self._rows, self._input, self._components = rows, input, components
        self._precisions = [any_precision(name) for name in precisions]
        self._window = window_of("hann", length)
        self.operation = "spectrum"
        self.shape = f"{rows} rows, {length} points, {overlap} shared"
        self.kind = f"{input}, mean of {self._average}"
        self.flops = self.bytes_moved = 0.0
        if components is not None and not self._problem_of(components, "fp64").groups:
            raise ValueError(f"components must make a mean of {self._average} segments in each row")

    def _problem_of(self, components: int, precision: str) -> SpectrumProblem:
        real = self._input in ("float32", "real int8")
        return spectrum_problem(
            (self._rows, components // self._rows // (1 if real else 2)), length=self._length,
            overlap=self._overlap, average=self._average, real=real, onesided=None,
            precision=PRECISIONS[precision],
        )  # fmt: skip

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return random samples of the type, integers as (row, time, 2) or (row, time)."""
        components = self._components or _COMPONENTS[device.backend]
        x = drawn_samples(self._input, self._rows, components, seed, device)
        problem = self._problem_of(components, "fp32")
        self.flops, self.bytes_moved = problem.flops, x.nbytes + 4.0 * np.prod(problem.shape)
        return (x,)

    def _call(self, precision: str, x: Any) -> Any:
        return spectrum(
            x, self._length, overlap=self._overlap, average=self._average, window=self._window,
            precision=precision,
        )  # fmt: skip

    def _candidate(self, name: str, row: Precision, call: Callable[[Any], Any]) -> Candidate:
        return Candidate(
            name, row, name, lambda x: (as_argument(x),), call, output="real",
            chosen=kernels_of(call),
        )  # fmt: skip

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.spectrum` at fp32, or at the precisions that were given."""
        return [
            self._candidate("argand", row, partial(self._call, row.name))
            for row in self._precisions
        ]

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' estimates, and on a GPU our kernels one after another."""

        def unfused(precision: str, x: Any) -> Any:
            from argand.spectrum.gpu import PLAN_OVERRIDE

            with PLAN_OVERRIDE.use(None):
                return self._call(precision, x)

        def library(compute: Callable[..., Any], x: Any) -> Any:
            problem = self._problem_of(_components_of(x), "fp32")
            return compute(as_floats(x), self._window, self._overlap, problem.average)

        ours = self._precisions if device.backend == "cuda" else []
        return [
            *whole_calls("spectrum", device.backend, PRECISIONS["fp32"], lambda x: (x,), library),
            *(self._candidate(_UNFUSED, row, partial(unfused, row.name)) for row in ours),
        ]

    def _places(self, problem: SpectrumProblem) -> list[tuple[int, slice]]:
        """Return rows and groups to verify: at the beginning, in the middle and at the end."""
        count = max(1, self.sampled(*_CHECKED_VALUES) // (problem.average * problem.length))
        count, last = min(count, problem.groups), problem.rows - 1
        firsts = (
            (0, 0),
            (last // 2, (problem.groups - count) // 2),
            (last, problem.groups - count),
        )
        return [(row, slice(first, first + count)) for row, first in dict.fromkeys(firsts)]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares groups of three rows with SciPy in fp64."""
        (x,), parts = operands, []
        components = _components_of(x)
        problem = self._problem_of(components, "fp64")
        places = self._places(problem)
        for row, groups in places:
            begin = groups.start * problem.average * problem.hop
            end = (groups.stop * problem.average - 1) * problem.hop + problem.length
            parts.append(on_host(x[row, begin:end]))
        some = as_floats(np.stack(parts))
        part = replace(problem, leading=some.shape[:1], samples=some.shape[1])
        reference = spectra_reference(some, self._window, part, scaling="density", sample_rate=1.0)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            ran = ""
            if candidate.name in ("argand", _UNFUSED):
                ran = self._ran(components, candidate, device)
            found = np.stack([on_host(result[row, groups]) for row, groups in places])
            return assess_spectra(
                reference, found, candidate.precision, backend=device.backend, ran=ran
            )

        return assess

    def _ran(self, components: int, candidate: Candidate, device: Device) -> str:
        """Return what of ours transformed, by which its bound is."""
        if device.backend == "cpu":
            return BLOCKS
        from argand.spectrum.gpu import PLAN_OVERRIDE, algorithm

        problem = self._problem_of(components, candidate.precision.name)
        if candidate.name == "argand":
            return algorithm(problem, device)[1]
        with PLAN_OVERRIDE.use(None):
            return algorithm(problem, device)[1]


def _components_of(x: Any) -> int:
    return int(x.size) * (2 if x.dtype.kind == "c" else 1)


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 8 to 16384 points, log-uniform, and 1 to 16 rows of every type of samples.

    Every other length is a power of two. Half of a segment is shared, or nothing; means are of one
    segment, of 2 to 64, or of all, each alike often.
    """
    found: list[Case] = []
    for number in range(cases):
        length, rows, several = (
            int(sizes(rng, low, high, (1,))[0]) for low, high in ((8, 1 << 14), (1, 16), (2, 64))
        )
        if number % 2:
            length = 1 << length.bit_length() - 1
        overlap = int(rng.integers(2)) * (length // 2)
        average = (1, several, None)[int(rng.integers(3))]
        kind = INPUTS[int(rng.integers(len(INPUTS)))]
        found.append(SpectrumCase(length, rows, kind, overlap, average))
    return found
