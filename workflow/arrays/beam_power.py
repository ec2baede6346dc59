"""The power of another workload's beams as logits, in stretches of its product."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.data import Product, power
from workflow.storage import operands
from workflow.storage.drawn import Stretched
from workflow.storage.inputs import InputError
from workflow.storage.products import read_outline, read_product

Array = npt.NDArray[Any]
STRETCH_BYTES = 64 << 20
"""Of the product, in memory at a time; at least one entry of the axis with the smallest."""


@dataclass(frozen=True)
class BeamPower:
    """``x`` is power over its ``mean``, times a scale; the beams are its last axis."""

    x: Stretched
    axes: tuple[str, ...]
    mean: float
    nonfinite: dict[str, int]


def beam_power(path: Path, name: str, scale: float) -> tuple[BeamPower, Product]:
    """The power of the beams in a product file of the workload ``name``, and its outline.

    Power over its mean is free of the samples' unit and of the order of 1, and the ratio of two
    beams' probabilities depends on the difference of their powers alone. The file is read three
    times: for the mean, to count what is not finite, and as the stretches are asked for.

    Raises InputError for a product without beams or without power, DataError for a damaged one.
    """
    outline = read_outline(path)
    if "beam" not in outline.axes:
        raise InputError(
            f"input.workload must have beams, but the product of {name!r} has the axes "
            f"{list(outline.axes)}"
        )
    axis, step = _stretches(outline)
    starts = range(0, outline.data.shape[outline.axes.index(axis)], step)
    # One stretch is kept, so that a small product is read once.
    power = lru_cache(maxsize=1)(partial(_power, path, axis, step))
    mean = math.fsum(float(np.sum(power(start), dtype=np.float64)) for start in starts)
    mean /= max(1, outline.data.size)
    if not mean > 0:
        raise InputError(f"input.workload: the mean beam power of {name!r} is {mean}")
    kind = outline.data.real.dtype

    def logits() -> Iterator[tuple[int, Array]]:
        for start in starts:
            yield start, np.ascontiguousarray(power(start) * kind.type(scale / mean))

    counts = [operands.count_all({"x": x})["x"] for _, x in logits()]
    axes = (*(other for other in outline.axes if other != "beam"), "beam")
    lengths = dict(zip(outline.axes, outline.data.shape, strict=True))
    x = Stretched(tuple(lengths[one] for one in axes), kind, axes.index(axis), step, logits)
    total = {key: sum(count[key] for count in counts) for key in ("nan", "inf")}
    return BeamPower(x, axes, mean, total), outline


def _stretches(outline: Product) -> tuple[str, int]:
    """The axis, not the beams', whose entries are small enough, and a power of two of them."""
    lengths = dict(zip(outline.axes, outline.data.shape, strict=True))
    entries = {axis: outline.data.nbytes // n for axis, n in lengths.items() if axis != "beam"}
    fitting = [axis for axis, size in entries.items() if size <= STRETCH_BYTES]
    axis = fitting[0] if fitting else min(entries, key=lambda axis: entries[axis])
    most = max(1, min(lengths[axis], STRETCH_BYTES // max(1, entries[axis])))
    return axis, 1 << (most.bit_length() - 1 if most < lengths[axis] else (most - 1).bit_length())


def _power(path: Path, axis: str, step: int, start: int) -> Array:
    product = read_product(path, stretch=(axis, start, start + step))
    return np.moveaxis(power(product.data), product.axes.index("beam"), -1)
