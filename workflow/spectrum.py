"""The axis that comes out of a Fourier transform: its name, its values and their unit."""

from __future__ import annotations

import numpy as np

from workflow.data import Array, Coordinate, Staged
from workflow.storage.coordinates import step_of

FORWARD = {"sample": "frequency", "time": "frequency", "frequency": "delay"}
INVERSE = {"sample": "sample", "frequency": "time", "delay": "frequency"}
"""Names that axes become; others have `SUFFIX` at the end, or lose it."""
SUFFIX = "_frequency"
RECIPROCAL = {
    "s": "Hz", "ms": "kHz", "us": "MHz", "ns": "GHz", "Hz": "s", "kHz": "ms", "MHz": "us",
    "GHz": "ns", "cycles/sample": "", "": "cycles/sample",
}  # fmt: skip
"""Units of frequency and time; of another unit u it is 1/u."""


def transformed(staged: Staged, *, inverse: bool, shift: bool) -> tuple[str, Coordinate]:
    """The name and the values of the axis that the transform of the samples' last one has.

    With N entries a step d apart they are k / (N d): k from 0 to N - 1, of which the upper half are
    the negative ones, or with ``shift`` from -(N // 2) on. Without a coordinate d is one sample.

    Raises InputError where the steps of the samples are not equal.
    """
    axes = staged.axes["samples"]
    length = staged.operands["samples"].shape[-1]
    found = staged.coordinates.get(axes[-1])
    name = _renamed(axes[-1], inverse)
    if name in axes[:-1]:
        name = f"{axes[-1]}_{name}"
    steps = np.arange(length) - (length // 2 if shift else 0)
    if found is None and inverse:
        return name, Coordinate(steps, "", "sample number")
    step = 1.0 if found is None else step_of(found, f"input.coordinates.{axes[-1]}")
    units = "" if found is None else found.units
    reciprocal = RECIPROCAL.get(units, f"1/{units}")
    negative = "" if shift else " (the upper half are the negative ones)"
    return name, Coordinate(steps / (length * step), reciprocal, f"{name}{negative}")


def _renamed(axis: str, inverse: bool) -> str:
    if not inverse:
        return FORWARD.get(axis, f"{axis}{SUFFIX}")
    return INVERSE.get(axis, axis.removesuffix(SUFFIX) if SUFFIX in axis else f"{axis}_sample")


def shifted(data: Array) -> Array:
    """Entry 0 of the last axis in its middle; what has one value everywhere (`blank`) stays."""
    return np.fft.fftshift(data, axes=-1) if any(data.strides) else data
