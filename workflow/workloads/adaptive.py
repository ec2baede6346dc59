"""Adaptive beams: weights with the least power and no distortion, from covariances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, solve_hermitian
from argand.device import array_module
from argand.hermitian.plan import LARGEST_N
from argand.rounding import power_of_two, round_operand, scale_exponents

from workflow import antennas
from workflow.accuracy import Accuracy
from workflow.accuracy.adaptive_accuracy import (
    AdaptiveReference,
    adaptive_reference,
    assess_adaptive,
    hermitian,
)
from workflow.arrays import sky
from workflow.arrays.antenna_places import channel_centres, in_hz_or_m, of_directions
from workflow.arrays.covariances import (
    COVARIANCES,
    check_covariances,
    check_inputs,
    checked_values,
    placed,
    raised_for_mean,
)
from workflow.arrays.steering import steered
from workflow.config.adaptive_case import AdaptiveCase
from workflow.config.case import Case
from workflow.config.formats import FORMATS
from workflow.data import Array, Product, Staged, along, blank, places
from workflow.figures import beam_pictures, pictures
from workflow.files.input_error import InputError
from workflow.implementation import Implementation, Shape
from workflow.inputs import operand_values, operands
from workflow.inputs.operands import Operand
from workflow.readers.polarizations import of_voltages
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = ("frequency", "polarization", "beam", "antenna")
"""Axes of the weights, given and found."""
OPERANDS = (COVARIANCES, Operand("weights", AXES))


@register
class Adaptive(Workload):
    """Weights of each beam for each channel and polarization."""

    kind: ClassVar[str] = "adaptive"
    operation: ClassVar[str] = "hermitian"
    caption: ClassVar[str] = (
        "Power that the first channel's middle beam takes from each direction, in dB below the "
        "strongest: over the direction cosines l and m of a planar array, over l of a line. It is "
        "0 dB at the cross, where the beam looks, and has nulls at the circles, the sources of a "
        "simulation. Without places of antennas, the moduli of the weights."
    )
    case_type: ClassVar[type[Case]] = AdaptiveCase
    small: ClassVar[Mapping[str, Any]] = {
        "antennas": 5, "beams": 3, "channels": 2, "loading": 3.0,
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {"antennas": 64, "beams": 16, "channels": 64}
    splits: ClassVar[tuple[str, ...]] = ("frequency", "polarization")
    reference_copies: ClassVar[float] = 4.0
    result_like: ClassVar[str] = "weights"
    case: AdaptiveCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        return {
            "antennas": log_uniform(rng, 2, 48), "beams": log_uniform(rng, 1, 16),
            "channels": int(rng.integers(1, 4)), "loading": float(rng.choice([0.1, 1.0])),
        }  # fmt: skip

    @property
    def _steered(self) -> bool:
        return self.case.input is None or self.case.input.weights is None

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where covariances and weights are none, or do not fit together."""
        if self.case.input is None:
            return
        found = placed(operands.outline(self.case.input, OPERANDS, upstream))
        shape = found.operands["covariances"].shape
        if self._steered:
            check_covariances(found, FORMATS[self.case.input.format].covariance)
        else:
            check_inputs(found)
        if shape[3] != shape[4] or not 1 <= shape[3] <= LARGEST_N:
            raise InputError(
                f"input.covariances must be square with up to {LARGEST_N} antennas, got "
                f"{shape[3]} antennas and {shape[4]} columns"
            )
        if self._steered:
            return
        weights, sizes = found.operands["weights"].shape, (shape[2], shape[1], shape[3])
        pairs = zip((weights[0], weights[1]), sizes[:2], strict=True)
        if weights[3] != sizes[2] or any(one not in (1, other) for one, other in pairs):
            raise InputError(
                f"input.weights must be of {sizes[0]} frequencies or 1, {sizes[1]} polarizations "
                f"or 1, any beams and {sizes[2]} antennas as the covariances, got {weights}"
            )

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands covariances and weights; complex64 where they are simulated."""
        case = self.case
        if case.input is not None:
            found = placed(self.staged_input(OPERANDS, upstream))
            operand_values.refuse_zeros(found, COVARIANCES.name)
            found = checked_values(found)
            if case.input.flagged == "zero":
                found = raised_for_mean(found)
        else:
            place = case.frequencies.centres(case.channels), self._positions()
            r = sky.covariances(*place, case.sources, case.noise, case.samples, self.rng)
            found = replace(
                self._outlined(),
                operands={"covariances": hermitian(r).astype(r.dtype)},
                attributes={"seed": self.seed},
            )
        return self._with_weights(found, held=True) if self._steered else found

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        given = case.input
        found = placed(operands.outline(given, OPERANDS, upstream)) if given else self._outlined()
        return self._with_weights(found, held=False) if self._steered else found

    def _outlined(self) -> Staged:
        """Return the simulated covariances without values, and where the antennas stand."""
        case = self.case
        n, where = case.antennas or 0, self._positions()
        centres = case.frequencies.centres(case.channels)
        coordinates = {"frequency": channel_centres(centres), **places(where)}
        data = {"covariances": blank((1, 1, case.channels, n, n), np.complex64)}
        return Staged(data, {"covariances": COVARIANCES.axes}, coordinates)

    def _positions(self) -> Array:
        highest_hz = float(self.case.frequencies.centres(self.case.channels)[-1])
        return self.case.array.positions(self.case.antennas or 0, highest_hz)

    def _with_weights(self, found: Staged, *, held: bool) -> Staged:
        return steered(found, self.case.directions(), AXES, held=held)

    def remark(self, staged: Staged) -> str:
        """See `Workload.remark`: directions that may be wrong, flags in a mean over times."""
        if (given := self.case.input) is None:
            return ""
        times = {**staged.operands, **staged.drawn}[COVARIANCES.name].shape[0]
        flags = f"what is flagged at some of the {times} times is left out of their mean"
        said = (
            of_directions(staged.coordinates) if self._steered else "",
            flags if given.flagged == "zero" and times > 1 else "",
        )
        return "; ".join(filter(None, said))

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (frequency, polarization, beam, antenna)."""
        r, weights = (outline.operands[one.name].shape for one in OPERANDS)
        return (r[2], r[1], *weights[2:])

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 4/3 n^3 operations a covariance and 8 n^2 a beam; m antennas, n beams."""
        r, weights = (staged.operands[one.name] for one in OPERANDS)
        found = self.result_shape(staged)
        systems, n = found[0] * found[1], r.shape[-1]
        values = r.size + weights.size + int(np.prod(found))
        return Shape(
            flops=systems * (4 / 3 * n**3 + 8.0 * n**2 * found[2]),
            bytes_moved=float(values * operands.complex_bytes(precision)),
            batch=systems,
            m=n,
            n=found[2],
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.solve_hermitian`."""
        how = "LAPACK" if device.backend == "cpu" else "one kernel"
        return Implementation.ours(
            precision, f"Cholesky in {precision.output}, {how}",
            partial(self._adapted, _solved), partial(_cast, precision=precision),
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, PyTorch on a GPU."""
        return implementations(self.case, device, "hermitian", self._adapted, _cast)

    def _adapted(self, solve: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        r = given["covariances"].mean(axis=0).swapaxes(0, 1).copy()
        n = r.shape[-1]
        diagonal = r.reshape(*r.shape[:2], n * n)[..., :: n + 1]
        diagonal += self.case.loading / n * diagonal.real.sum(axis=-1, keepdims=True)
        c = given["weights"].swapaxes(-1, -2)
        c = array_module(c).broadcast_to(c, (*r.shape[:2], *c.shape[2:]))
        x = solve(r, c.conj())
        with np.errstate(all="ignore"):  # NaN, of what is not definite
            w = x / (c * x).sum(axis=-2, keepdims=True)
        return w.conj().swapaxes(-1, -2).copy()

    def reference(self, staged: Staged) -> AdaptiveReference:
        """Return the result of LAPACK's zpotrf and zpotrs through SciPy."""
        r, weights = (staged.operands[one.name] for one in OPERANDS)
        shape, n = self.result_shape(staged), r.shape[-1]
        given = r.swapaxes(1, 2).reshape(len(r), -1, n, n)
        steering = np.broadcast_to(weights, shape).reshape(-1, *shape[2:])
        return adaptive_reference(given, steering, self.case.loading)

    def assess(
        self,
        staged: Staged,
        reference: AdaptiveReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_adaptive`."""
        beams = result.reshape(-1, *result.shape[2:])
        return assess_adaptive(reference, beams, precision, self.case.loading)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the weights, with frequency, feed, direction, the antennas' places and times."""
        kept = along(staged.coordinates, {*AXES, "east_north", "east_north_up"})
        if "polarization" in kept:
            kept["polarization"] = of_voltages(kept["polarization"])
        if (time := staged.coordinates.get("time")) is not None:
            said = f"{time.long_name or 'time'}, of covariances whose mean the weights are of"
            kept["averaged_time"] = replace(time, long_name=said, axes=("integration",), step=None)
        return Product("weights", result, AXES, kept, f"{self.name}: adaptive weights")

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the pattern of the first channel's middle beam."""
        there, beam = product.coordinates, product.data.shape[2] // 2
        weights = product.data[0, 0, beam]
        if not {"antenna_position", "frequency", "l", "m"} <= set(there):
            axes.plot(np.abs(weights), marker=".")
            axes.set_xlabel("antenna number")
            pictures.label_whole(axes.xaxis)
            axes.set_ylabel(f"modulus of the weights of beam {beam}")
            return
        frequency, where = in_hz_or_m(there, "frequency")[:1], there["antenna_position"].values

        def waves(directions: Array) -> Array:
            found: Array = antennas.phases(frequency, where, directions)[0]
            return found

        look = float(there["l"].values[beam]), float(there["m"].values[beam])
        sources = [one.direction for one in self.case.sources] if self.case.input is None else []
        linear = bool(np.ptp(where[:, 1]) == 0)
        beam_pictures.draw_pattern(weights, waves, linear, look, sources, axes)


def _cast(given: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Return the operands in the type of a precision.

    Below fp32 covariances are rounded to what it holds.
    """
    r = given["covariances"]
    if not precision.exact_operands:
        wide = r.astype(precision.output)
        shape = wide.shape
        lines = wide.reshape(*shape[:3], 1, -1)
        scale = np.ones(1, np.float32)
        if precision.scaled:
            scale = power_of_two(scale_exponents(lines, -1, precision.operand))
        r = (round_operand(lines * scale, precision) / scale).reshape(shape)
    return operands.cast({**given, "covariances": r}, precision)


def _solved(r: Any, b: Any) -> Any:
    """Return x, NaN where a covariance is not positive definite, on the CPU as on a GPU."""
    return solve_hermitian(r, b, info=array_module(r).empty(r.shape[:-2], np.int32))
