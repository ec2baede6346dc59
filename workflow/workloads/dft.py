"""Discrete Fourier transforms, with a window before them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import PRECISIONS, Device, Precision, dft
from argand.spectrum.problem import DETRENDS

from workflow.accuracy import Accuracy
from workflow.accuracy.references import SpectrumReference, spectrum_reference
from workflow.config.case import Case
from workflow.config.dft_case import DftCase
from workflow.data import Array, Product, Staged, blank, power
from workflow.drawn import Box, Drawn
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.spectra import spectral_axes, spectral_origins, transforms
from workflow.spectra.windows import check_window, make_window
from workflow.storage.noise import complex_normal
from workflow.workloads.base import NOTHING, Workload, plan_words_of, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES = Operand("samples", ("axis_0", "axis_1", "batch", "sample"), free=True, named=True)
WINDOW = Operand("window", ("sample",), real=True)


@register
class Dft(Workload):
    """A batch of transforms of one length; with ``power`` a `PowerSpectra`."""

    kind: ClassVar[str] = "dft"
    operation: ClassVar[str] = "dft"
    caption: ClassVar[str] = (
        "Mean power of all transforms in dB below its largest value, over what the transform "
        "leads to. A tone is a peak, as narrow as the window lets it be; noise is the floor."
    )
    case_type: ClassVar[type[Case]] = DftCase
    small: ClassVar[Mapping[str, Any]] = {"length": 130, "batch": 5, "window": "hann"}
    common: ClassVar[Mapping[str, Any]] = {"length": 1009, "batch": 256}
    result_like: ClassVar[str] = "samples"
    splits: ClassVar[tuple[str, ...]] = SAMPLES.axes[:-1]
    variants: ClassVar[tuple[str, ...]] = ("power",)
    case: DftCase

    @classmethod
    def for_case(cls, case: DftCase) -> type[Dft]:
        """See `Workload.for_case`: spectra, or the power of segments."""
        if not case.power:
            return cls
        from workflow.workloads.power_spectra import PowerSpectra

        return PowerSpectra

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        case = _drawn_sizes(rng)
        if rng.random() < 0.7:
            return case | {"inverse": bool(rng.random() < 0.3)}
        return case | _drawn_power(rng)

    @classmethod
    def drawn_variant(cls, rng: np.random.Generator, variant: str) -> dict[str, Any]:
        """See `Workload.drawn_variant`."""
        return _drawn_sizes(rng) | _drawn_power(rng)

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the axes before the one that is transformed."""
        return axes["samples"][:-1]

    @property
    def _operands(self) -> list[Operand]:
        return [replace(SAMPLES, along=self.case.axis), WINDOW]

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise ValueError for an unknown window, InputError for one that does not fit."""
        if self.case.window is not None:
            check_window(self.case.window)
        if self.case.input is None:
            return
        found = operands.headers(self.case.input, self._operands, upstream)
        spectral_axes.transformed(
            self.outline(upstream), inverse=self.case.inverse, shift=self.case.shift
        )
        length = found["samples"].shape[-1]
        if "window" in found and found["window"].shape != (length,):
            raise InputError(
                f"input.window must have {length} values, as the transformed axis has, "
                f"got {found['window'].shape[0]}"
            )

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands samples (..., N) and, where there is one, window (N)."""
        case = self.case
        if case.input is None:
            shape = (case.batch, case.length or 0)
            drawn = {"samples": Drawn(shape, np.dtype(np.complex64), self._samples)}
            axes = {"samples": SAMPLES.axes[-2:]}
            return self._with_window(Staged({}, axes, {}, {"seed": self.seed}, drawn), shape[-1])
        found = self.staged_input(self._operands, upstream)
        samples = found.drawn.get("samples", found.operands.get("samples"))
        assert samples is not None  # a key of the input that must be given
        return self._with_window(found, samples.shape[-1])

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            found = operands.outline(case.input, self._operands, upstream)
        else:
            samples = blank((case.batch, case.length or 0), np.complex64)
            found = Staged({"samples": samples}, {"samples": SAMPLES.axes[-2:]})
        return self._with_window(found, found.operands["samples"].shape[-1], values=False)

    def _with_window(self, staged: Staged, length: int, *, values: bool = True) -> Staged:
        """Return staged data with the window along the axis that is transformed."""
        window: Any = self.case.window
        data, axes = dict(staged.operands), dict(staged.axes)
        if window is not None:
            data["window"] = make_window(window, length) if values else blank((length,), float)
        if "window" in data or "window" in axes:
            axes["window"] = axes["samples"][-1:]
        return replace(staged, operands=data, axes=axes)

    def _samples(self, box: Box) -> Array:
        """Return noise, and tones whose phases at the start are the transforms', not the box's."""
        samples = complex_normal(self.rng(0, *box.offset), box.shape, self.case.noise)
        time = np.arange(box.along(1).start, box.along(1).stop)
        for index, tone in enumerate(self.case.tones):
            # Whole turns are taken off first: a phase of many turns would lose its digits.
            wave = tone.amplitude * np.exp(2j * np.pi * (tone.frequency * time % 1))
            turns = self.rng(1 + index, box.offset[0]).random((box.shape[0], 1))
            start = np.exp(2j * np.pi * turns)
            samples += start.astype(np.complex64) * wave.astype(np.complex64)
        return samples

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 5 N log2 N operations a transform, as is usual; data are read and written once."""
        samples = staged.operands["samples"]
        length = samples.shape[-1]
        size = operands.complex_bytes(precision)
        window = staged.operands["window"].size * size / 2 if "window" in staged.operands else 0
        return Shape(
            flops=5.0 * samples.size * np.log2(max(2, length)),
            bytes_moved=2.0 * samples.size * size + window,
            batch=samples.size // length,
            n=length,
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.dft`.

        The algorithm names its stages, and what runs on a GPU.
        """
        case = self.case

        def compute(given: Mapping[str, Any]) -> Any:
            return dft(_windowed(given), inverse=case.inverse, norm=case.norm, precision=precision)

        *leading, length = staged.operands["samples"].shape
        rows = int(np.prod(leading))
        algorithm, plan_words = transforms.algorithm(rows, length, precision, device)
        return Implementation.ours(
            precision, algorithm, compute, partial(operands.cast, precision=precision),
            plan_words=plan_words,
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return scipy.fft on the CPU, cuFFT through CuPy on a GPU."""
        case = self.case

        def call(transform: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            return transform(_windowed(given), inverse=case.inverse, norm=case.norm)

        return implementations(case, device, "dft", call)

    def reference(self, staged: Staged) -> SpectrumReference:
        """Return the result of scipy.fft in fp64 of the windowed samples."""
        wide = operands.cast(staged.operands, PRECISIONS["fp64"])
        return spectrum_reference(_windowed(wide), inverse=self.case.inverse, norm=self.case.norm)

    def assess(
        self,
        staged: Staged,
        reference: SpectrumReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `transforms.assess_transform`, by what ran."""
        ran = plan_words_of(staged)
        return transforms.assess_transform(reference, result, precision, backend=device, ran=ran)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the transforms.

        The coordinate of the last axis follows from the samples' steps.
        """
        case = self.case
        name, coordinate = spectral_axes.transformed(staged, inverse=case.inverse, shift=case.shift)
        beside = spectral_axes.coordinates_beside(staged, {name: coordinate})
        since = spectral_origins.counted_from(staged, name, inverse=case.inverse)
        if since is not None:
            del beside[since[0]]  # it is in the axis again
        beside |= spectral_origins.first_entry(staged, inverse=case.inverse)
        axes = (*staged.axes["samples"][:-1], name)
        title = f"{self.name}: {'inverse ' if case.inverse else ''}Fourier transform"
        data = spectral_axes.shifted(result) if case.shift else result
        units = staged.units.get("samples", "")
        return Product("spectrum", data, axes, beside, title, units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the mean power of all transforms in dB, frequency 0 in the middle."""
        values = product.data.reshape(-1, product.data.shape[-1])
        means, name = power(values).mean(axis=0), product.axes[-1]
        coordinate = product.coordinates[name]
        where = coordinate.values
        if not (self.case.inverse or self.case.shift or where[0]):
            means = np.fft.fftshift(means)
            where = np.fft.fftshift(np.fft.fftfreq(len(means))) * len(means) * where[1:2].sum()
        where, label = pictures.labelled(name, where, coordinate.units)
        axes.plot(where, pictures.decibels(means), lw=1)
        axes.set_xlabel(label)
        axes.set_ylabel("mean power (dB relative to the largest)")
        axes.grid(alpha=0.3)


def _windowed(given: Mapping[str, Any]) -> Any:
    """Return samples times the window, in their type."""
    samples = given["samples"]
    return samples * given["window"] if "window" in given else samples


def _drawn_sizes(rng: np.random.Generator) -> dict[str, Any]:
    length = int(rng.choice([4, 13, 60, 64, 127, 257, 360, 512, 1009, 1024, 2048]))
    return {"length": length, "batch": int(rng.integers(2, 5))}


def _drawn_power(rng: np.random.Generator) -> dict[str, Any]:
    """Return keys of spectral estimates: segments, their means and trends."""
    average = [1, 2, "all"][int(rng.integers(3))]
    more = {"segments": 2 * int(rng.integers(1, 4)), "real": bool(rng.random() < 0.5)}
    power = {"power": True, "window": "hann", "average": average}
    return more | power | {"detrend": [None, *DETRENDS][int(rng.integers(3))]}
