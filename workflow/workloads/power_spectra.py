"""Power of segments: the kind ``dft`` with ``power: true``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import PRECISIONS, Device, Precision, SpectrumProblem
from argand import spectrum as estimate
from argand.spectrum.problem import spectrum_problem
from argand.spectrum.window import scaled_window

from workflow.accuracy import Accuracy
from workflow.accuracy.spectra_accuracy import SpectraReference, assess_spectra, spectra_reference
from workflow.accuracy.spectra_bounds import BLOCKS
from workflow.data import Array, Coordinate, Product, Staged, blank, of_powers
from workflow.drawn import Box, Drawn
from workflow.figures.power_pictures import draw_powers
from workflow.files.input_error import InputError
from workflow.files.units import power_units
from workflow.implementation import Implementation, NoResultError, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.spectra import spectral_axes
from workflow.spectra.spectral_origins import sample_step
from workflow.spectra.windows import check_window, make_window
from workflow.workloads.base import NOTHING, plan_words_of
from workflow.workloads.baselines import implementations
from workflow.workloads.dft import SAMPLES, Dft

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WINDOW = Operand("window", ("segment_sample",), real=True)


class PowerSpectra(Dft):
    """Means of |X|^2 over groups of segments: spectrograms and Welch's estimates."""

    operation: ClassVar[str] = "spectrum"
    caption: ClassVar[str] = (
        "Power in dB below its largest value: over frequency, or of a spectrogram over time and "
        "frequency. A tone is a line as narrow as the window lets it be; noise is the floor."
    )
    result_like: ClassVar[str] = ""
    real_result: ClassVar[bool] = True

    @property
    def _operands(self) -> list[Operand]:
        return [replace(SAMPLES, along=self.case.axis, real=self.case.real), _WINDOW]

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError for too few samples, another window, or times of unequal steps."""
        case = self.case
        if case.window is not None:
            check_window(case.window)
        found = {}
        if case.input is not None:
            found = operands.headers(case.input, self._operands, upstream)
        outline = self.outline(upstream)
        length = self._length(outline)
        samples, several = outline.operands["samples"].shape[-1], case.average != "all"
        if samples < length:
            raise InputError(
                f"length must be at most the samples of an axis, {samples}, got {length}"
            )
        case.overlapping(length)
        problem = self._problem(outline, PRECISIONS["fp64"])
        if several and not problem.groups:
            count = spectrum_problem(
                (*problem.leading, problem.samples), length=length, overlap=problem.overlap,
                average=1, real=case.real, onesided=None, precision=PRECISIONS["fp64"],
            ).groups  # fmt: skip
            raise InputError(f"average must be at most {count}, the segments, got {case.average}")
        if "window" in found and found["window"].shape != (length,):
            raise InputError(
                f"input.window must have {length} values, as a segment has samples, "
                f"got {found['window'].shape[0]}"
            )
        self._check_coefficients(length)
        self._axes(outline)

    def _check_coefficients(self, length: int) -> None:
        """Raise InputError for a window of a dataset by which no power can be divided."""
        values = None if self.case.input is None else operands.few(self.case.input, _WINDOW)
        if values is None:
            return
        try:
            scaled_window(values, length, self.case.scaling, 1.0)
        except ValueError as error:
            raise InputError(f"input.{error}") from None

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands samples (..., time) and window (N)."""
        case = self.case
        if case.input is not None:
            return self._windowed(self.staged_input(self._operands, upstream))
        outline = self._drawn()
        operand = outline.operands["samples"]
        drawn = {"samples": Drawn(operand.shape, operand.dtype, self._samples)}
        axes = {"samples": outline.axes["samples"]}
        return self._windowed(Staged({}, axes, self._times(), {"seed": self.seed}, drawn))

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            found = operands.outline(case.input, self._operands, upstream)
        else:
            found = self._drawn()
        return self._windowed(found, values=False)

    def _drawn(self) -> Staged:
        """Return the outline of what is drawn."""
        case = self.case
        samples = blank(
            (case.batch, self._samples_drawn), np.float32 if case.real else np.complex64
        )
        times = self._times(values=False)
        axis = "time" if times else SAMPLES.axes[-1]
        return Staged({"samples": samples}, {"samples": (SAMPLES.axes[-2], axis)}, times)

    @property
    def _samples_drawn(self) -> int:
        length = self.case.length or 0
        return length + (self.case.segments - 1) * (length - self.case.overlapping(length))

    def _times(self, *, values: bool = True) -> dict[str, Coordinate]:
        """Return the times of drawn samples, without their values for an outline."""
        rate, count = self.case.sample_rate_hz, self._samples_drawn
        if rate is None:
            return {}
        times = np.arange(count) / rate if values else blank((count,), np.float64)
        return {"time": Coordinate(times, "s", "time")}

    def _samples(self, box: Box) -> Array:
        """Return the samples of `Dft`, or their real parts."""
        samples = super()._samples(box)
        return np.ascontiguousarray(samples.real) if self.case.real else samples

    def _length(self, staged: Staged) -> int:
        """Return N, the samples of a segment."""
        if self.case.length is not None:
            return self.case.length
        samples = staged.operands.get("samples", staged.drawn.get("samples"))
        assert samples is not None  # a key of the input that must be given
        return samples.shape[-1]

    def _windowed(self, staged: Staged, *, values: bool = True) -> Staged:
        """Return the operands with the window; without one it is 1 everywhere."""
        data, axes = dict(staged.operands), dict(staged.axes)
        if "window" not in axes:
            length, window = self._length(staged), self.case.window or "boxcar"
            data["window"] = make_window(window, length) if values else blank((length,), float)
            axes["window"] = _WINDOW.axes
        return replace(staged, operands=data, axes=axes)

    def _problem(self, staged: Staged, precision: Precision) -> SpectrumProblem:
        case, length = self.case, self._length(staged)
        return spectrum_problem(
            staged.operands["samples"].shape, length=length, overlap=case.overlapping(length),
            average=case.average, real=case.real, onesided=None, precision=precision,
            detrend=case.detrend,
        )  # fmt: skip

    def _scale(self, staged: Staged) -> dict[str, Any]:
        step, _ = sample_step(staged)  # below 0 where times descend, or channels fall
        return {"scaling": self.case.scaling, "sample_rate": 1 / abs(step)}

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (..., time, frequency)."""
        return self._problem(outline, PRECISIONS["fp64"]).shape

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 5 N log2 N operations a segment and those of squares; read and written once."""
        problem = self._problem(staged, precision)
        size = np.dtype(precision.real_output).itemsize
        written = float(np.prod(problem.shape, dtype=np.int64)) * size
        read = float(staged.operands["samples"].size * size * (1 if self.case.real else 2))
        return Shape(
            flops=problem.flops, bytes_moved=written + read,
            batch=problem.rows * problem.segments, n=problem.length,
        )  # fmt: skip

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.spectrum`; the algorithm says what runs."""
        problem, scale = self._problem(staged, precision), self._scale(staged)
        average = self.case.average

        def compute(given: Mapping[str, Any]) -> Any:
            return estimate(
                given["samples"], problem.length, overlap=problem.overlap, average=average,
                window=given["window"], precision=precision, detrend=problem.detrend, **scale,
            )  # fmt: skip

        algorithm, plan_words = _algorithm(problem, device)
        return Implementation.ours(
            precision, algorithm, compute, partial(operands.cast, precision=precision),
            plan_words=plan_words,
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return scipy.signal on the CPU.

        On a GPU windowed segments, cuFFT and squares through CuPy.
        """
        problem, scale = self._problem(staged, PRECISIONS["fp64"]), self._scale(staged)

        def call(compute: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            try:
                return compute(
                    given["samples"], given["window"], problem.overlap, problem.average,
                    detrend=problem.detrend, **scale,
                )  # fmt: skip
            except ValueError as error:
                # SciPy fits no line to samples that are not finite.
                if self.case.allow_nonfinite and problem.detrend == "linear":
                    raise NoResultError(f"scipy.signal.detrend: {error}") from None
                raise

        return implementations(self.case, device, "spectrum", call)

    def reference(self, staged: Staged) -> Any:
        """Return the result of SciPy's transforms of windowed segments in fp64."""
        problem = self._problem(staged, PRECISIONS["fp64"])
        return spectra_reference(
            staged.operands["samples"], staged.operands["window"], problem, **self._scale(staged)
        )

    def assess(
        self, staged: Staged, reference: Any, result: Array, precision: Precision, device: str
    ) -> Accuracy:
        """See `assess_spectra`."""
        assert isinstance(reference, SpectraReference)
        return assess_spectra(
            reference, result.reshape(-1, *result.shape[-2:]), precision, backend=device,
            ran=plan_words_of(staged),
        )  # fmt: skip

    def _axes(self, staged: Staged) -> tuple[str, dict[str, Coordinate]]:
        problem = self._problem(staged, PRECISIONS["fp64"])
        return spectral_axes.segments(staged, problem, shift=self.case.shift)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return powers, with the frequency of each bin and the middle of each group in time."""
        axes = staged.axes["samples"]
        bins, own = self._axes(staged)
        coordinates = spectral_axes.coordinates_beside(staged, own)
        data = spectral_axes.shifted(result) if self.case.shift else result
        units = power_units(
            staged.units.get("samples", ""), own[bins].units, density=self.case.scaling == "density"
        )
        title = f"{self.name}: power of segments"
        return Product("power", data, (*axes, bins), of_powers(coordinates), title, units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the mean power of all signals in dB: over frequency, or over time and frequency."""
        means = product.data.reshape(-1, *product.data.shape[-2:]).mean(axis=0)
        draw_powers(means, product.axes[-2:], product.coordinates, axes)


def _algorithm(problem: SpectrumProblem, device: Device) -> tuple[str, str]:
    """Return the algorithm, in words and for its bound."""
    if device.backend == "cpu":
        return "window, transform and squares in blocks", BLOCKS
    from argand.spectrum.gpu import algorithm

    return algorithm(problem, device)
