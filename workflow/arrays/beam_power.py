"""The power of another workload's beams, detected or not, as logits, in stretches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workflow.data import Coordinate, Product, power
from workflow.drawn import Stretched
from workflow.files.input_error import InputError
from workflow.inputs import operand_values
from workflow.inputs.axes import Operand
from workflow.inputs.product_operand import ProductArray, ProductOperand
from workflow.storage.products import read_outline

BEAMS = Operand("x", ("axis_0", "axis_1", "row", "column"), free=True, along="beam")


@dataclass(frozen=True)
class BeamPower:
    """``x`` is power over its ``mean``, times a scale; the beams are its last axis."""

    x: Stretched
    axes: tuple[str, ...]
    coordinates: dict[str, Coordinate]
    mean: float
    nonfinite: dict[str, int]


def beams_of(outline: Product, name: str) -> ProductOperand:
    """Return the beams of a product, their axis last.

    Raises InputError where it has none, and for Stokes parameters, since only I is power.
    """
    if "beam" not in outline.axes:
        raise InputError(
            f"input.workload must have beams, but the product of {name!r} has the axes "
            f"{list(outline.axes)}"
        )
    if "stokes" in outline.axes:
        raise InputError(
            f"input.workload must have power, but the product of {name!r} has Stokes parameters; "
            f"take one of them by input: {{x: {{workload: {name}}}, select: {{x: {{stokes: I}}}}}}"
        )
    return ProductOperand(BEAMS, outline)


def beam_power(path: Path, name: str, scale: float) -> BeamPower:
    """Return the power of the beams in a product file of the workload ``name``.

    Power over its mean is free of the samples' unit and of the order of 1, and the ratio of two
    beams' probabilities depends on the difference of their powers alone. The file is read three
    times: for the mean, to count what is not finite, and as the stretches are asked for.

    Raises InputError for a product without beams or without power, DataError for a damaged one.
    """
    outline = read_outline(path)
    beams, kind = beams_of(outline, name), outline.data.real.dtype
    detected = outline.data.dtype.kind == "f"
    powers = beams.stretched(ProductArray(path)).changed(np.real if detected else power, kind)
    mean = math.fsum(float(np.sum(values, dtype=np.float64)) for _, values in powers.read())
    mean /= max(1, outline.data.size)
    if not mean > 0:
        raise InputError(
            f"input.workload: the mean beam power of {name!r} must be above 0, got {mean}: logits "
            "are powers over it"
        )

    x = powers.changed(lambda values: np.asarray(values * kind.type(scale / mean)), kind)
    return BeamPower(
        x, beams.map.axes, beams.coordinates(), mean, operand_values.count_stretches(x)
    )
