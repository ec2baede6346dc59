"""Filter banks: samples to channels of frequency, and of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import PRECISIONS, ChanneliseProblem, Device, Precision, channelise

from workflow.accuracy import Accuracy
from workflow.accuracy.channelise_accuracy import (
    ChanneliseReference,
    assess_channelise,
    channelise_reference,
    designed,
)
from workflow.arrays.plane_waves import received_band
from workflow.config.case import Case
from workflow.config.channelise_case import ChanneliseCase
from workflow.data import Array, Coordinate, Product, Staged, blank, places, power
from workflow.drawn import Box, Drawn
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.spectra import spectral_axes
from workflow.spectra.windows import check_window
from workflow.storage.noise import complex_normal
from workflow.workloads.base import NOTHING, Workload, plan_words_of, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLES = Operand(
    "samples", ("axis_0", "polarization", "antenna", "time"), free=True, named=True
)  # fmt: skip
COEFFICIENTS = Operand("coefficients", ("tap",), real=True)


@register
class Channelise(Workload):
    """Spectra of a filter bank, one after another in time."""

    kind: ClassVar[str] = "channelise"
    operation: ClassVar[str] = "channelise"
    caption: ClassVar[str] = (
        "Mean power of each channel in dB below the strongest, over frequency. A tone is one "
        "channel, or two where it lies between them; noise is the floor, and what a tone leaves in "
        "channels far from it is the filter's stop band."
    )
    case_type: ClassVar[type[Case]] = ChanneliseCase
    small: ClassVar[Mapping[str, Any]] = {
        "channels": 12, "taps": 3, "oversampling": "4/3", "antennas": 2, "samples": 200,
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {
        "channels": 1024, "taps": 8, "oversampling": 1, "antennas": 1, "samples": 1 << 18,
    }  # fmt: skip
    splits: ClassVar[tuple[str, ...]] = SAMPLES.axes[:-1]
    case: ChanneliseCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        channels, taps = int(rng.choice([2, 12, 16, 37, 64, 256])), int(rng.integers(1, 9))
        samples = channels * (taps + int(rng.integers(0, 12)))
        oversampling = str(rng.choice(["1", "2", "4/3"])) if channels % 4 == 0 else 1
        return {
            "channels": channels, "taps": taps, "samples": samples, "oversampling": oversampling,
            "real": bool(rng.random() < 0.3),
        }  # fmt: skip

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the axes before time."""
        return axes["samples"][:-1]

    @property
    def _operands(self) -> list[Operand]:
        return [replace(SAMPLES, along=self.case.axis, real=self.case.real), COEFFICIENTS]

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError for too few samples, other coefficients, or times of unequal steps."""
        case = self.case
        check_window(case.window)
        if case.input is None:
            return
        found = operands.headers(case.input, self._operands, upstream)
        length, samples = case.channels * case.taps, found["samples"].shape[-1]
        if samples < length:
            raise InputError(
                f"input.samples must have at least channels times taps, {length}, along time, got "
                f"{samples}"
            )
        if "coefficients" in found and found["coefficients"].shape != (length,):
            raise InputError(
                f"input.coefficients must have {length} values, channels times taps, got "
                f"{found['coefficients'].shape[0]}"
            )
        self._channels(self.outline(upstream))

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands samples (..., time) and coefficients (taps channels)."""
        case = self.case
        if case.input is None:
            outline = self.outline()
            operand = outline.operands["samples"]
            drawn = {"samples": Drawn(operand.shape, operand.dtype, self._samples)}
            axes = {"samples": outline.axes["samples"]}
            time = np.arange(case.samples or 0) / case.sample_rate_hz
            there = {**outline.coordinates, "time": Coordinate(time, "s", "time")}
            staged = Staged({}, axes, there, {"seed": self.seed}, drawn)
        else:
            staged = self.staged_input(self._operands, upstream)
        return self._with_coefficients(staged)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            found = operands.outline(case.input, self._operands, upstream)
        else:
            shape = (case.polarizations, case.antennas, case.samples or 0)
            samples = blank(shape, np.float32 if case.real else np.complex64)
            time = Coordinate(blank((case.samples or 0,), np.float64), "s", "time")
            there = {"time": time, **(places(self._positions()) if case.sources else {})}
            found = Staged({"samples": samples}, {"samples": SAMPLES.axes[1:]}, there)
        return self._with_coefficients(found, values=False)

    def _with_coefficients(self, staged: Staged, *, values: bool = True) -> Staged:
        """Return staged data with the coefficients, which are designed where there are none."""
        case, data, axes = self.case, dict(staged.operands), dict(staged.axes)
        if "coefficients" not in axes:
            made = designed(case.window, case.channels, case.taps) if values else None
            length = case.channels * case.taps
            data["coefficients"] = blank((length,), float) if made is None else made
            axes["coefficients"] = COEFFICIENTS.axes
        return replace(staged, operands=data, axes=axes)

    def _positions(self) -> Array:
        """Return (antennas, 2) in metres."""
        case = self.case
        return case.array.positions(case.antennas, case.centre + case.sample_rate_hz / 2)

    def _samples(self, box: Box) -> Array:
        """Return noise, waves, and tones whose initial phases are the antenna's, not the box's."""
        samples = complex_normal(self.rng(0, *box.offset), box.shape, self.case.noise)
        time = np.arange(box.along(2).start, box.along(2).stop)
        for polarization in range(box.shape[0]):
            for antenna in range(box.shape[1]):
                place = box.offset[0] + polarization, box.offset[1] + antenna
                turns = self.rng(1, *place).random(len(self.case.tones))
                for tone, start in zip(self.case.tones, turns, strict=True):
                    # Whole turns are taken off first: a phase of many would lose its digits.
                    phase = 2j * np.pi * ((tone.frequency * time + start) % 1)
                    wave = tone.amplitude * np.exp(phase)
                    samples[polarization, antenna] += wave.astype(np.complex64)
        if self.case.sources:
            samples += self._arriving(box)
        return np.ascontiguousarray(samples.real) if self.case.real else samples

    def _arriving(self, box: Box) -> Array:
        case = self.case
        make = received_band(
            case.centre, case.sample_rate_hz, self._positions(), case.sources, partial(self.rng, 2)
        )
        return make(box)

    def _problem(self, staged: Staged, precision: Precision) -> ChanneliseProblem:
        case = self.case
        *leading, samples = staged.operands["samples"].shape
        return ChanneliseProblem(
            tuple(leading), samples, case.channels, case.taps, case.fraction, case.real, precision
        )

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (..., time, frequency)."""
        return self._problem(outline, PRECISIONS["fp64"]).shape

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 2 T operations a sample and part, 5 M log2 M a spectrum; read and written once."""
        problem = self._problem(staged, precision)
        size = operands.complex_bytes(precision)
        written = float(np.prod(problem.shape, dtype=np.int64)) * size
        read = staged.operands["samples"].size * size / (2 if self.case.real else 1)
        return Shape(
            flops=problem.flops, bytes_moved=written + read, batch=problem.rows * problem.spectra,
            n=problem.channels, k=problem.taps,
        )  # fmt: skip

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.channelise`; the algorithm says what runs."""
        case = self.case
        how: dict[str, Any] = {
            "channels": case.channels, "taps": case.taps, "oversampling": case.fraction,
            "precision": precision,
        }  # fmt: skip

        def compute(given: Mapping[str, Any]) -> Any:
            return channelise(given["samples"], window=given["coefficients"], **how)

        algorithm, plan_words = _algorithm(self._problem(staged, precision), device)
        return Implementation.ours(
            precision, algorithm, compute, partial(operands.cast, precision=precision),
            plan_words=plan_words,
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, CuPy and cuFFT on a GPU: filtered samples in memory."""
        case = self.case

        def call(compute: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            return compute(
                given["samples"], given["coefficients"], case.channels,
                oversampling=case.fraction,
            )  # fmt: skip

        return implementations(case, device, "channelise", call)

    def reference(self, staged: Staged) -> ChanneliseReference:
        """Return the result of SciPy's transforms of windowed samples, in fp64."""
        return channelise_reference(
            staged.operands["samples"], staged.operands["coefficients"], self.case.channels,
            self.case.fraction,
        )  # fmt: skip

    def assess(
        self,
        staged: Staged,
        reference: ChanneliseReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_channelise`."""
        return assess_channelise(
            reference, result.reshape(-1, *result.shape[-2:]), precision, backend=device,
            ran=plan_words_of(staged),
        )  # fmt: skip

    def _channels(self, staged: Staged) -> tuple[str, dict[str, Coordinate]]:
        problem = self._problem(staged, PRECISIONS["fp64"])
        case = self.case
        return spectral_axes.channels(staged, problem, centre_hz=case.centre_hz, shift=case.shift)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the spectra, with the frequency of each channel and the time of each spectrum."""
        axes = staged.axes["samples"]
        channels, own = self._channels(staged)
        coordinates = spectral_axes.coordinates_beside(staged, own)
        data = spectral_axes.shifted(result) if self.case.shift else result
        return Product(
            "spectra", data, (*axes, channels), coordinates,
            f"{self.name}: channels of a filter bank", staged.units.get("samples", ""),
        )  # fmt: skip

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the mean power of each channel in dB, by frequency."""
        values = product.data.reshape(-1, product.data.shape[-1])
        name = product.axes[-1]
        where = product.coordinates[name]
        order = np.argsort(where.values)
        across, label = pictures.labelled(name, where.values[order], where.units)
        axes.plot(across, pictures.decibels(power(values).mean(axis=0)[order]), lw=1)
        axes.set_xlabel(label)
        axes.set_ylabel("mean power (dB relative to the strongest)")
        axes.grid(alpha=0.3)


def _algorithm(problem: ChanneliseProblem, device: Device) -> tuple[str, str]:
    """Return the algorithm in words, and on a GPU as `accuracy.channelise_bounds` reads it."""
    if device.backend == "cuda":
        from argand.channelise import gpu

        return gpu.algorithm(problem, device)
    exact = problem.precision.exact_operands
    return f"filter in blocks, {'pocketfft' if exact else f'dft at {problem.precision.name}'}", ""
