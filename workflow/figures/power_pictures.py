"""Pictures of power over time and frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workflow.data import Coordinate
from workflow.figures import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]
_MAX_DRAWN = 1024
"""Rows, and columns, of a picture."""
_LABEL = "power (dB relative to the largest)"


def draw_powers(
    powers: Array, names: Sequence[str], there: Mapping[str, Coordinate], axes: Axes
) -> None:
    """Draw (up, across) powers in dB over both axes, a single row or column as a curve.

    Args:
        powers: at most `_MAX_DRAWN` means of equal blocks of them are drawn along an axis.
        names: names of the axis upwards and of the one across.
        there: coordinates, in any order along the axis across; entries of axes without one, and in
            an image of those whose steps are not equal, are counted.
    """
    (up, upwards), (across, label) = (
        pictures.labelled(name, *_along(there.get(name), name, length))
        for name, length in zip(names, powers.shape, strict=True)
    )
    order = np.argsort(across)
    across, powers = across[order], powers[:, order]
    if 1 in powers.shape:
        where, below = (across, label) if len(powers) == 1 else (up, upwards)
        axes.plot(where, pictures.decibels(powers.reshape(-1)), lw=1)
        axes.set_xlabel(below)
        axes.set_ylabel(_LABEL)
        axes.grid(alpha=0.3)
        return
    across, label = pictures.of_equal_steps(names[1], across, label)
    up, upwards = pictures.of_equal_steps(names[0], up, upwards)
    edges = [pictures.edges_of_blocks(one, _MAX_DRAWN) for one in (across, up)]
    drawn = pictures.decibels(pictures.block_means(powers, _MAX_DRAWN))
    image = axes.imshow(drawn, origin="lower", aspect="auto", extent=(*edges[0], *edges[1]))
    axes.figure.colorbar(image, ax=axes, label=_LABEL)
    axes.set_xlabel(label)
    axes.set_ylabel(upwards)


def _along(one: Coordinate | None, name: str, length: int) -> tuple[Array, str]:
    """Return an axis's values and unit, or the numbers of its entries where it has none."""
    if one is None or one.of(name) != (name,) or one.values.dtype.kind not in "fiu":
        return np.arange(length), ""
    return one.values, one.units
