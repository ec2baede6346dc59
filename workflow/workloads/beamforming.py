"""Beamforming: beams = weights . samples, for each channel and polarization."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision
from argand.beam_power.problem import DETECTIONS
from argand.gemm.problem import gemm_problem

from workflow import antennas
from workflow.accuracy.references import ProductReference, product_reference
from workflow.arrays import steering
from workflow.arrays.antenna_places import (
    antenna_positions,
    channel_centres,
    incoherent,
    of_directions,
)
from workflow.arrays.plane_waves import received, steering_weights
from workflow.config.beamforming_case import BeamformingCase
from workflow.config.case import Case
from workflow.data import Array, Coordinate, Product, Staged, blank, power
from workflow.drawn import Drawn
from workflow.figures import beam_pictures
from workflow.figures.power_pictures import draw_powers
from workflow.files.units import times
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.described import describe
from workflow.inputs.operands import Operand
from workflow.workloads import matrix_product
from workflow.workloads.base import NOTHING, log_uniform, register
from workflow.workloads.matrix_product import MatrixProduct

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPERANDS = (
    Operand("weights", ("frequency", "polarization", "beam", "antenna")),
    Operand("samples", ("frequency", "polarization", "antenna", "time"), amplitudes=True),
)
NAMES = tuple(operand.name for operand in OPERANDS)
AXES = ("frequency", "polarization", "beam", "time")


@register
class Beamforming(MatrixProduct):
    """Station or array beams as one batched product."""

    kind: ClassVar[str] = "beamforming"
    operation: ClassVar[str] = "gemm"
    caption: ClassVar[str] = (
        "Mean power of each beam over all channels, polarizations and times, in dB below the "
        "strongest: a map over the direction cosines of a grid, circles at the sources of a "
        "simulation, a dot for each beam of no grid, or a line over the beams. A source is a peak "
        "as wide as the array resolves. One beam is drawn over time and frequency."
    )
    case_type: ClassVar[type[Case]] = BeamformingCase
    small: ClassVar[Mapping[str, Any]] = {
        "channels": 2, "polarizations": 2, "beams": 12, "antennas": 9, "samples": 31,
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {"beams": 64, "antennas": 96, "samples": 1024}
    splits: ClassVar[tuple[str, ...]] = ("frequency", "time")
    variants: ClassVar[tuple[str, ...]] = DETECTIONS
    case: BeamformingCase

    @classmethod
    def for_case(cls, case: BeamformingCase) -> type[Beamforming]:
        """See `Workload.for_case`: beams, or what is detected of them."""
        if case.detect is None:
            return cls
        from workflow.workloads.detected_beams import DetectedBeams

        return DetectedBeams

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        return {
            "channels": int(rng.integers(1, 3)), "beams": log_uniform(rng, 4, 32),
            "antennas": log_uniform(rng, 4, 128), "samples": log_uniform(rng, 8, 64),
        }  # fmt: skip

    @classmethod
    def drawn_variant(cls, rng: np.random.Generator, variant: str) -> dict[str, Any]:
        """See `Workload.drawn_variant`."""
        case, integrate = cls.drawn(rng), log_uniform(rng, 1, 16)
        bins = max(1, case["samples"] // integrate)
        case |= {"samples": bins * integrate, "detect": variant, "integrate": integrate}
        return case | ({"polarizations": 2} if variant == "stokes" else {})

    def frequencies_hz(self) -> Array:
        """Return (channels,) centres of the channels."""
        return self.case.frequencies.centres(self.case.channels)

    def positions(self) -> Array:
        """Return (antennas, 2) in metres."""
        highest_hz = float(self.frequencies_hz()[-1])
        return self.case.array.positions(self.case.antennas or 0, highest_hz)

    def directions(self) -> Array:
        """Return (beams, 2) direction cosines of the beams."""
        return self.case.directions()

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where the file's weights and samples do not fit together."""
        if self.case.steered:
            self.outline(upstream)
        elif self.case.input is not None:
            found = describe(self.case.input, OPERANDS, upstream, check=True)
            shapes = {name: header.shape for name, header in found.headers.items()}
            matrix_product.check_shapes(OPERANDS, shapes)
            steering.refuse_repeated(found)
            if "weights" in found.made:
                steering.refuse_other_places(found.made["weights"], found.coordinates)

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands weights and samples; complex64 when drawn."""
        axes = {operand.name: operand.axes for operand in OPERANDS}
        case = self.case
        if case.input is None:
            place = self.frequencies_hz(), self.positions()
            makers = {
                "weights": steering_weights(*place, self.directions()),
                "samples": received(*place, case.sources, case.noise, self.rng),
            }
            drawn = {
                name: Drawn(operand.shape, operand.dtype, makers[name])
                for name, operand in self.outline().operands.items()
            }
            time = np.arange(case.samples or 0) / case.frequencies.step_hz
            return Staged({}, axes, self._coordinates(time), {"seed": self.seed}, drawn)
        staged = self.staged_input(OPERANDS, upstream)
        return self._steered(staged, held=True) if case.steered else staged

    def _steered(self, staged: Staged, *, held: bool) -> Staged:
        """Return the samples with weights toward the grid, or their outline.

        One antenna whose place nobody says is its own beam.
        """
        if self.case.beams == 1 and steering.is_unplaced(staged):
            return steering.unsteered(staged, OPERANDS[0].axes, held=held)
        return steering.steered(staged, self.directions(), OPERANDS[0].axes, held=held)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            found = operands.outline(case.input, OPERANDS, upstream)
            return self._steered(found, held=False) if case.steered else found
        axes = {operand.name: operand.axes for operand in OPERANDS}
        outer, elements = (case.channels, case.polarizations), case.antennas or 0
        data = {
            "weights": blank((*outer, case.beams or 0, elements), np.complex64),
            "samples": blank((*outer, elements, case.samples or 0), np.complex64),
        }
        time = blank((case.samples or 0,), np.float64)
        return Staged(data, axes, self._coordinates(time))

    def remark(self, staged: Staged) -> str:
        """See `Workload.remark`: directions of steered beams that may be wrong, wide channels."""
        there = staged.coordinates
        if not self.case.steered or "antenna_position" not in there:
            return ""
        farthest = float(np.hypot(*self.case.directions().T).max(initial=0))
        return "; ".join(filter(None, (of_directions(there), incoherent(there, farthest))))

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (frequency, polarization, beam, time)."""
        weights, samples = (outline.operands[name].shape for name in NAMES)
        return gemm_problem(weights, samples).shape

    def _coordinates(self, time: Array) -> dict[str, Coordinate]:
        return {
            "frequency": channel_centres(self.frequencies_hz()),
            "time": Coordinate(time, "s", "time"),
            **steering.beams_toward(self.directions()),
            "antenna_position": antenna_positions(self.positions()),
        }

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 8 channels polarizations beams antennas times operations."""
        a, b = (staged.operands[name] for name in NAMES)
        problem = gemm_problem(a.shape, b.shape, precision=precision)
        return matrix_product.shape(problem, (a, b))

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.gemm`."""
        return matrix_product.ours(self.case, precision, device, NAMES, {})

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, cuBLAS on a GPU."""
        return matrix_product.peers(self.case, device, NAMES, {})

    def reference(self, staged: Staged) -> ProductReference:
        """Return the result of SciPy's zgemm, sampled where it is large."""
        return product_reference(*(staged.operands[name] for name in NAMES), seed=self.seed)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the beams' voltages, with frequency, direction and time."""
        title, units = f"{self.name}: beam voltages", times(staged.units, NAMES)
        return Product("beams", result, AXES, steering.beside_beams(staged), title, units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw each beam's mean power: a map over l and m, or a line over l or beams' numbers.

        One beam is drawn over time and frequency.
        """
        self._draw(product, power(product.data), axes)

    def _draw(self, product: Product, powers: Array, axes: Axes) -> None:
        """Draw (frequency, polarization, beam, time) powers."""
        if powers.shape[2] == 1:
            over_both = powers[:, :, 0].mean(axis=1).T
            draw_powers(over_both, ("time", "frequency"), product.coordinates, axes)
            return
        means = powers.mean(axis=(0, 1, 3))
        rows, columns = self._grid(len(means))
        if rows == 1:
            beam_pictures.draw_beams(means, product.coordinates, axes)
        else:
            sources = () if self.case.steered else self.case.sources
            places = [source.direction for source in sources]
            there = product.coordinates
            beam_pictures.draw_map(means.reshape(rows, columns), there, places, axes)

    def _grid(self, beams: int) -> tuple[int, int]:
        if self.case.input is not None and not self.case.steered:
            return 1, beams
        return antennas.beam_grid(self.case.array.geometry, beams)
