"""Detected beams: what `beamforming` is with ``detect``, power or Stokes parameters over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import PRECISIONS, Device, Precision, beam_power
from argand.beam_power.problem import STOKES, BeamPowerProblem, beam_power_problem

from workflow.accuracy import Accuracy
from workflow.accuracy.beam_power_accuracy import (
    BeamPowerReference,
    assess_beam_power,
    beam_power_reference,
)
from workflow.arrays.steering import beside_beams
from workflow.config.integration import integrated
from workflow.data import Array, Coordinate, Product, Staged, of_powers
from workflow.files.input_error import InputError
from workflow.files.units import squared, times
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.integrations import gap_within, integrated_times
from workflow.readers.polarizations import check_linear, feeds_of
from workflow.workloads.base import NOTHING
from workflow.workloads.baselines import implementations
from workflow.workloads.beamforming import NAMES, Beamforming

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FP64 = PRECISIONS["fp64"]
_AXES = {
    "power": ("frequency", "polarization", "beam", "time"),
    "stokes": ("frequency", "stokes", "beam", "time"),
}


class DetectedBeams(Beamforming):
    """Beams as detectors keep them: sums over time, without their voltages."""

    operation: ClassVar[str] = "beam_power"
    caption: ClassVar[str] = (
        "Mean power of each beam (I of Stokes parameters) over all channels, polarizations and "
        "times, in dB below the strongest: a map over the direction cosines of a grid, circles at "
        "the sources of a simulation, or a line over the beams. One beam is drawn over time and "
        "frequency."
    )
    reference_flops: ClassVar[float | None] = 1.0
    real_result: ClassVar[bool] = True

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return frequency and, of powers, polarization: bins are not cut."""
        return ("frequency", "polarization") if self.case.detect == "power" else ("frequency",)

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError also where bins do not divide samples or polarizations are not x, y."""
        super().check(upstream)
        if self.case.input is not None:
            outline = self.outline(upstream)
            self._problem(outline)
            if self.case.detect == "stokes":
                check_linear(feeds_of(outline.coordinates, "polarization"))

    def remark(self, staged: Staged) -> str:
        """See `Workload.remark`: bins over gaps in the times, too."""
        gaps = gap_within(staged.coordinates.get("time"), self.case.integrate, "bin")
        return "; ".join(filter(None, (super().remark(staged), gaps)))

    def _problem(self, staged: Staged, precision: Precision = FP64) -> BeamPowerProblem:
        """Return the problem of what is staged; raises InputError with what of it does not fit."""
        weights, samples = (staged.operands[name].shape for name in NAMES)
        try:
            integrated(samples[-1], self.case.integrate)
        except ValueError as error:
            raise InputError(str(error)) from None
        try:
            return beam_power_problem(
                weights, samples, detect=self.case.detect or "power",
                integrate=self.case.integrate, precision=precision,
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"detect: {error}") from None

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (frequency, polarization, beam, time), or stokes in the place of polarization."""
        return self._problem(outline).shape

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return the operations of the beams; operands read and sums written once."""
        problem = self._problem(staged, precision)
        read = sum(staged.operands[name].size for name in NAMES)
        written = int(np.prod(problem.shape, dtype=np.int64))
        real = np.dtype(precision.real_output).itemsize
        return Shape(
            flops=problem.flops, bytes_moved=float(2 * real * read + real * written),
            batch=problem.batch * problem.polarizations, m=problem.beams,
            n=problem.bins * problem.integrate, k=problem.antennas,
        )  # fmt: skip

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.beam_power`."""
        own = device.backend == "cuda" and not precision.exact_operands
        return Implementation.ours(
            precision,
            "mma.sync, detected in registers" if own else "products and squares in blocks",
            partial(self._detected, partial(beam_power, precision=precision.name)),
            partial(operands.cast, precision=precision),
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, CuPy on a GPU: all beams, then their squares."""
        return implementations(self.case, device, "beam_power", self._detected)

    def _detected(self, function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        weights, samples = (given[name] for name in NAMES)
        return function(weights, samples, detect=self.case.detect, integrate=self.case.integrate)

    def reference(self, staged: Staged) -> BeamPowerReference:  # type: ignore[override]
        """Return the result of NumPy's zgemm and sums of squares in fp64."""
        weights, samples = (staged.operands[name] for name in NAMES)
        return beam_power_reference(self._problem(staged), weights, samples, seed=self.seed)

    def assess(
        self,
        staged: Staged,
        reference: BeamPowerReference,  # type: ignore[override]
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_beam_power`."""
        grid = self._grid(reference.problem.beams)
        return assess_beam_power(reference, result, precision, backend=device, grid=grid)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return sums with frequency, Stokes parameter, direction and the middle of each bin."""
        detect = self.case.detect or "power"
        axes = _AXES[detect]
        kept = {
            name: one
            for name, one in beside_beams(staged).items()
            if name != "time"
            and not {"time", *(set(_AXES["power"]) - set(axes))} & set(one.of(name))
        }
        time = staged.coordinates.get("time")
        if time is not None and time.of("time") == ("time",):
            kept |= integrated_times(time, self.case.integrate, "time", "bin")
        if detect == "stokes":
            kept["stokes"] = Coordinate(np.array(STOKES), "", "Stokes parameter, V = 2 Im(x* y)")
        what = "Stokes parameters" if detect == "stokes" else "power"
        return Product(
            "power", result, axes, of_powers(kept),
            f"{self.name}: {what} of beams", squared(times(staged.units, NAMES)),
        )  # fmt: skip

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw what `Beamforming.picture` does, of Stokes parameters of I."""
        powers = product.data[:, :1] if self.case.detect == "stokes" else product.data
        self._draw(product, powers, axes)
