"""Correlation: V = sum over t of x(t) x(t)^H, for each channel and integration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, HerkProblem, Precision, herk
from argand.herk import cpu as numpy_backend
from argand.herk.problem import Form, herk_problem, result_shape

from workflow import antennas
from workflow.accuracy import Accuracy
from workflow.accuracy.correlation_accuracy import (
    CorrelationReference,
    assess_correlation,
    correlation_reference,
)
from workflow.arrays import visibilities
from workflow.arrays.antenna_places import (
    antenna_positions,
    channel_centres,
    incoherent,
    refuse_geocentric,
)
from workflow.arrays.plane_waves import received
from workflow.config.case import Case
from workflow.config.correlate_case import CorrelateCase
from workflow.config.integration import integrated
from workflow.data import PLACES, Array, Coordinate, Product, Staged, blank, of_conjugates, places
from workflow.drawn import Drawn
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.files.units import squared
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.inputs.uvh5_needs import check_for_uvh5
from workflow.integrations import gap_within, integrated_times
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VOLTAGES = Operand(
    "voltages", ("frequency", "polarization", "antenna", "time"), amplitudes=True
)  # fmt: skip
_OPERAND_AXES = {VOLTAGES.name: VOLTAGES.axes}
AXES: Mapping[Form, tuple[str, ...]] = {
    "full": ("frequency", "integration", "input", "conjugated_input"),
    "triangle": ("frequency", "integration", "pair"),
}
"""Axes of the result. An input is an antenna in a polarization, antenna after antenna of each."""


@register
class Correlate(Workload):
    """Visibilities of an array as batched Hermitian products."""

    kind: ClassVar[str] = "correlate"
    operation: ClassVar[str] = "herk"
    caption: ClassVar[str] = (
        "Visibilities of the first channel and integration: on and below the diagonal their "
        "amplitude in dB below the largest, above it their phase. A source is a pattern of phases "
        "that repeats with the distance of two inputs; noise is the diagonal alone."
    )
    case_type: ClassVar[type[Case]] = CorrelateCase
    small: ClassVar[Mapping[str, Any]] = {
        "channels": 2, "polarizations": 2, "antennas": 5, "samples": 36, "integrate": 12,
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {"antennas": 64, "samples": 1200, "integrate": 300}
    splits: ClassVar[tuple[str, ...]] = ("frequency",)
    case: CorrelateCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        each = log_uniform(rng, 1, 400)
        return {
            "channels": int(rng.integers(1, 3)), "antennas": log_uniform(rng, 2, 24),
            "samples": each * int(rng.integers(1, 3)), "integrate": each,
            "form": str(rng.choice(["full", "triangle"])),
        }  # fmt: skip

    def frequencies_hz(self) -> Array:
        """Return (channels,) centres of the channels."""
        return self.case.frequencies.centres(self.case.channels)

    def positions(self) -> Array:
        """Return (antennas, 2) in metres."""
        highest_hz = float(self.frequencies_hz()[-1])
        return self.case.array.positions(self.case.antennas or 0, highest_hz)

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where an integration does not divide the file's samples."""
        taken = None
        if self.case.input is not None:
            found = operands.headers(self.case.input, (VOLTAGES,), upstream)["voltages"]
            self._integrations(found.shape[-1])
            taken = found.numbers.get("frequency")
        if self.case.uvh5 is not None:
            outline = self.outline(upstream)
            each = self._integrations(outline.operands["voltages"].shape[-1])[1]
            check_for_uvh5(outline, self.case.uvh5, each, taken)
            refuse_geocentric(outline.coordinates)

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return operand voltages; complex64 when drawn."""
        case = self.case
        if case.input is not None:
            return self.staged_input((VOLTAGES,), upstream)
        make = received(self.frequencies_hz(), self.positions(), case.sources, case.noise, self.rng)
        operand = self.outline().operands["voltages"]
        drawn = {"voltages": Drawn(operand.shape, operand.dtype, make)}
        time = np.arange(case.samples or 0) / case.frequencies.step_hz
        return Staged({}, _OPERAND_AXES, self._coordinates(time), {"seed": self.seed}, drawn)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            return operands.outline(case.input, (VOLTAGES,), upstream)
        shape = (case.channels, case.polarizations, case.antennas or 0, case.samples or 0)
        time = blank((case.samples or 0,), np.float64)
        data = {"voltages": blank(shape, np.complex64)}
        return Staged(data, _OPERAND_AXES, self._coordinates(time))

    def remark(self, staged: Staged) -> str:
        """See `Workload.remark`: gaps, channels that are too wide, axes in another order."""
        given, time = self.case.input, staged.coordinates.get("time")
        held = staged.operands.get("voltages")  # of HDF5 alone; what others read has names
        unnamed = given is not None and given.axes_of("voltages") is None and time is None
        turned = visibilities.perhaps_turned(held.shape) if unnamed and held is not None else ""
        wide = incoherent(staged.coordinates) if given is not None else ""
        said = (gap_within(time, self.case.integrate, "integration"), wide)
        return turned or "; ".join(filter(None, said))

    def _coordinates(self, time: Array) -> dict[str, Coordinate]:
        where = self.positions()
        return {
            "frequency": channel_centres(self.frequencies_hz()),
            "time": Coordinate(time, "s", "time"),
            "antenna_position": antenna_positions(where),
            **places(where),
        }

    def _integrations(self, samples: int) -> tuple[int, int]:
        """Return the number of integrations and the samples of each.

        Raises InputError if some are left.
        """
        try:
            return integrated(samples, self.case.integrate)
        except ValueError as error:
            raise InputError(str(error)) from None

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (frequency, integration, input, input), or (frequency, integration, pair)."""
        channels, polarizations, elements, samples = outline.operands["voltages"].shape
        count, _ = self._integrations(samples)
        return result_shape((channels, count), polarizations * elements, self.case.form)

    def coordinate_bytes(self, outline: Staged) -> int:
        """See `Workload.coordinate_bytes`; a triangle's are the antennas and feeds of each pair."""
        found = super().coordinate_bytes(outline)
        if self.case.form == "triangle":
            found += 4 * 8 * self.result_shape(outline)[-1]
        return found

    def _problem(self, staged: Staged, precision: Precision) -> HerkProblem:
        channels, polarizations, elements, samples = staged.operands["voltages"].shape
        count, each = self._integrations(samples)
        return herk_problem(
            (channels, count, polarizations * elements, each), precision=precision,
            dtype=precision.output, form=self.case.form,
        )  # fmt: skip

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 4 n (n + 1) k operations a matrix; voltages read and visibilities written once."""
        problem = self._problem(staged, precision)
        values = staged.operands["voltages"].size + int(np.prod(problem.shape, dtype=np.int64))
        return Shape(
            flops=problem.flops, bytes_moved=values * operands.complex_bytes(precision),
            batch=problem.batch, m=problem.n, n=problem.n, k=problem.k,
        )  # fmt: skip

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.herk`."""
        how: dict[str, Any] = {
            "precision": precision, "form": self.case.form,
            "kernels": self.case.kernels.get(precision.name),
        }  # fmt: skip
        return Implementation.ours(
            precision, _algorithm(precision, device),
            lambda given: herk(self._inputs(given["voltages"]), **how),
            partial(operands.cast, precision=precision),
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, cuBLAS on a GPU: the full product."""

        def call(multiply: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            x = self._inputs(given["voltages"])
            return visibilities.in_form(self.case.form, multiply(x, x, op_b="C"))

        return implementations(self.case, device, "gemm", call)

    def _inputs(self, voltages: Any) -> Any:
        """Return (frequency, integration, input, sample): a view, whatever device holds them."""
        channels, polarizations, elements, samples = voltages.shape
        count, each = self._integrations(samples)
        found = voltages.reshape(channels, polarizations * elements, count, each)
        return found.swapaxes(1, 2)

    def reference(self, staged: Staged) -> CorrelationReference:
        """Return SciPy's zgemm, sampled where it is large, and zherk of the first matrix."""
        voltages = staged.operands["voltages"]
        return correlation_reference(self._inputs(voltages), self._steering(staged), seed=self.seed)

    def _steering(self, staged: Staged) -> Array | None:
        """Return (sources, inputs): phases of each planted source, in the first polarization."""
        case = self.case
        if case.input is not None:  # what stands along its axes is the file's, or nothing
            return None
        frequency = staged.coordinates["frequency"].values
        if not len(frequency):
            return None
        toward = np.array([source.direction for source in case.sources]).reshape(-1, 2)
        phases = antennas.phases(frequency[:1], self.positions(), toward)[0]
        return np.pad(phases, ((0, 0), (0, (case.polarizations - 1) * (case.antennas or 0))))

    def assess(
        self,
        staged: Staged,
        reference: CorrelationReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_correlation`."""
        if self.case.form == "triangle":
            result = visibilities.unfolded(result)
        return assess_correlation(reference, result, precision, backend=device)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return visibilities with frequency, integrations' middles, and the inputs' antennas."""
        found = {
            name: one for name, one in of_conjugates(staged.coordinates).items()
            if "time" not in one.of(name) and "antenna" not in one.of(name)[1:]
            and name not in ("antenna", "polarization", *PLACES)
        }  # fmt: skip
        _, polarizations, elements, _ = staged.operands["voltages"].shape
        if (time := staged.coordinates.get("time")) is not None:
            found |= integrated_times(time, self.case.integrate, "integration", "integration")
        found |= visibilities.coordinates_of(
            self.case.form, polarizations, elements, staged.coordinates
        )
        return Product(
            "visibilities", result, AXES[self.case.form], found, f"{self.name}: visibilities",
            squared(staged.units.get("voltages", "")),
        )  # fmt: skip

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw amplitude below the diagonal, phase above it, of channel and integration 0."""
        first = product.data[0, 0]
        if self.case.form == "triangle":
            first = visibilities.unfolded(first)
        n = len(first)
        above = np.triu(np.ones((n, n), bool), 1)
        amplitude = np.where(above, np.nan, pictures.decibels(np.square(np.abs(first))))
        phase = np.where(above, np.angle(first, deg=True), np.nan)
        extent = (-0.5, n - 0.5, n - 0.5, -0.5)
        below = axes.imshow(amplitude, cmap="viridis", interpolation="nearest", extent=extent)
        over = axes.imshow(
            phase, cmap="twilight", interpolation="nearest", extent=extent, vmin=-180, vmax=180
        )
        axes.set(xlabel="input, conjugated", ylabel="input", title=pictures.title_of(product, 2))
        pictures.label_whole(axes.xaxis, axes.yaxis)
        axes.figure.colorbar(below, ax=axes, label="amplitude, dB relative to the largest")
        axes.figure.colorbar(over, ax=axes, label="phase, degrees")


def _algorithm(precision: Precision, device: Device) -> str:
    if device.backend == "cuda":
        from argand.herk import gpu

        return gpu.herk_algorithm(precision)
    return numpy_backend.herk_algorithm(precision)
