"""Weights that steer beams by where antennas stand, and checks of weights that a file has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from workflow.arrays.antenna_places import (
    HOW_TO_PLACE,
    check_up,
    in_hz_or_m,
    lacking_places,
    refuse_geocentric,
)
from workflow.arrays.plane_waves import steering_weights
from workflow.data import PLACES, SELECTED, TAKEN, Array, Coordinate, Staged, blank, is_blank
from workflow.drawn import Drawn
from workflow.files.input_error import InputError
from workflow.inputs.described import Described
from workflow.inputs.equal_steps import OFF_STEP
from workflow.inputs.product_operand import ProductOperand


def beams_toward(directions: Array) -> dict[str, Coordinate]:
    """Return the coordinates along beams toward (beams, 2) direction cosines."""
    return {
        "beam": Coordinate(np.arange(len(directions)), "", "beam number"),
        "l": Coordinate(directions[:, 0], "", "direction cosine l (east)", ("beam",)),
        "m": Coordinate(directions[:, 1], "", "direction cosine m (north)", ("beam",)),
    }


def refuse_repeated(found: Described) -> None:
    """Raise InputError where several weights are of one channel or polarization that is selected.

    It is selected here, or by the workload whose product the samples are. The beams of all of them
    would be of the same samples. Weights whose file has no such axis may be of all entries, such as
    those of inputs of two feeds that form beams of both polarizations.
    """
    weights, samples = (found.headers[name] for name in ("weights", "samples"))
    counts = dict(zip(weights.map.axes, weights.shape, strict=True))
    for axis in ("frequency", "polarization"):
        taken = samples.numbers.get(axis)
        is_taken = taken is not None and taken.length == 1
        before = found.coordinates.get(f"{SELECTED}{axis}")
        was_taken = axis in samples.map.missing and before is not None and TAKEN in before.long_name
        if counts[axis] > 1 and (is_taken or was_taken):
            who = "input.select.samples: takes" if is_taken else "input.samples: has"
            where = "" if is_taken else ", which another workload selects"
            raise InputError(
                f"{who} one entry of {axis}{where}, and weights have {counts[axis]}, whose beams "
                "would all be of the same samples; take one of weights too"
            )


def refuse_other_places(weights: ProductOperand, there: Mapping[str, Coordinate]) -> None:
    """Raise InputError where antennas of weights stand elsewhere than those of samples.

    Args:
        weights: a product that may say where its antennas are, from any origin.
        there: what stands along the samples' axes, such as where their antennas are.
    """
    said = weights.product.coordinates.get("antenna_position")
    along = [name for name in PLACES if name in there and there[name].of(name) == ("antenna",)]
    if said is None or len(along) < 2 or weights.renamed.get(said.axes[0]) != "antenna":
        return
    entries = weights.picked.axes[weights.product.axes.index(said.axes[0])].indices
    ours = np.stack([in_hz_or_m(there, name) for name in along], axis=-1)
    theirs = said.values[entries, : len(along)]
    ours = ours[:, : theirs.shape[1]]
    if ours.shape != theirs.shape or is_blank(said.values):
        return
    ours, theirs = ours - ours[:1], theirs - theirs[:1]
    off = np.hypot.reduce(ours - theirs, axis=1)
    apart = np.hypot.reduce(np.diff(ours, axis=0), axis=1)
    if off.max() > OFF_STEP * apart[apart > 0].min(initial=np.inf):
        number = int(off.argmax())
        must, got = (
            ", ".join(f"{m:.6g} m {name}" for m, name in zip(one[number], along, strict=False))
            for one in (ours, theirs)
        )
        raise InputError(
            f"input.weights: antenna {number} must stand where that of samples does, {must} of the "
            f"first, got {got}; select the same antennas, in the same order, by input.select"
        )


def steered(samples: Staged, directions: Array, axes: tuple[str, ...], *, held: bool) -> Staged:
    """Return samples, or their outline, with weights toward (beams, 2) direction cosines.

    Args:
        samples: with frequency, and east, north and, but where they stand in one plane, up of the
            antennas as coordinates; the weights are the same for each polarization.
        directions: l and m of each beam.
        axes: axes of the weights.
        held: whether weights are made when they are written; else they are `blank`.

    Raises InputError where the coordinates do not say where the antennas are.
    """
    there = samples.coordinates
    if lacking := lacking_places(there):
        raise InputError(
            "input.weights: missing; beams are steered by frequency, east and north of the "
            f"antennas, but the samples have no {' and no '.join(lacking)}, only {sorted(there)}; "
            f"{HOW_TO_PLACE}"
        )
    frequencies = in_hz_or_m(there, "frequency")
    check_up(there)
    refuse_geocentric(there)
    along = [name for name in PLACES if name in there]
    place = np.stack([in_hz_or_m(there, name) for name in along], axis=-1)
    shape = (len(frequencies), 1, len(directions), len(place))
    dtype = _type_of_weights(samples)
    weights = Drawn(shape, dtype, steering_weights(frequencies, place, directions, dtype))
    kept = {name: one for name, one in there.items() if name not in along}
    position = Coordinate(
        place, "m", f"{', '.join(along)} of an antenna", ("antenna", "_".join(along))
    )
    found = {**kept, **beams_toward(directions), "antenna_position": position}
    return _with_weights(samples, weights, axes, found, held=held)


def is_unplaced(samples: Staged) -> bool:
    """Return whether samples, or their outline, are of one antenna without a known place."""
    along = {
        size
        for name, one in {**samples.operands, **samples.drawn}.items()
        for axis, size in zip(samples.axes[name], one.shape, strict=True)
        if axis == "antenna"
    }
    return along == {1} and not samples.coordinates.keys() & set(PLACES)


def unsteered(samples: Staged, axes: tuple[str, ...], *, held: bool) -> Staged:
    """Return samples of one antenna, or their outline, with a weight of 1: its own beam.

    The arguments are those of `steered`.
    """
    dtype = _type_of_weights(samples)
    weights = Drawn((1,) * len(axes), dtype, lambda box: np.ones(box.shape, dtype))
    return _with_weights(samples, weights, axes, samples.coordinates, held=held)


def _type_of_weights(samples: Staged) -> np.dtype[Any]:
    """Return a type as exact as the samples': complex128 beside complex128."""
    types = [one.dtype for one in (*samples.operands.values(), *samples.drawn.values())]
    return np.result_type(np.complex64, *types)


def _with_weights(
    samples: Staged, weights: Drawn, axes: tuple[str, ...],
    coordinates: Mapping[str, Coordinate], *, held: bool,
) -> Staged:  # fmt: skip
    outlined = {} if held else {"weights": blank(weights.shape, weights.dtype)}
    return replace(
        samples,
        operands={**outlined, **samples.operands},
        drawn={**({"weights": weights} if held else {}), **samples.drawn},
        axes={"weights": axes, **samples.axes},
        coordinates=dict(coordinates),
    )


def beside_beams(staged: Staged) -> dict[str, Coordinate]:
    """Return the coordinates of the axes of beams, from those of samples and weights.

    Beams have no antennas: these are summed. Where they stand is kept, with an axis of its own, and
    their names or numbers beside it; with nothing to stand beside these are left out.
    """
    kept = dict(staged.coordinates)
    names = kept.pop("antenna", None)
    if names is not None and any("antenna" in one.of(name) for name, one in kept.items()):
        kept["antenna"] = replace(names, axes=("antenna",))
    return kept
