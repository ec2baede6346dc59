"""Pictures of beams: mean power over the direction cosines of a grid, or along a line of beams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workflow.data import Coordinate
from workflow.figures import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]


def draw_line(means: Array, direction: Coordinate | None, axes: Axes) -> None:
    """Draw the mean power of each beam over l, or over their numbers where there is no l."""
    where = np.arange(len(means)) if direction is None else direction.values
    axes.plot(where, pictures.decibels(means), marker="." if len(means) < 65 else "")
    axes.set_xlabel("beam number" if direction is None else "direction cosine l (east)")
    axes.set_ylabel("mean power, dB relative to the strongest")
    axes.grid(alpha=0.3)


def draw_map(
    means: Array, extent: float, sources: Iterable[tuple[float, float]], axes: Axes
) -> None:
    """Draw means (m, l) of a grid from -extent to extent, with circles at sources."""
    # Half a step beyond the outer beams, so that each pixel's centre is its beam's direction.
    l_half, m_half = (extent * count / max(1, count - 1) for count in means.shape[::-1])
    image = axes.imshow(
        pictures.decibels(means), origin="lower", cmap="viridis", interpolation="nearest",
        extent=(-l_half, l_half, -m_half, m_half), aspect="equal",
    )  # fmt: skip
    for at in sources:
        axes.plot(*at, marker="o", ms=10, mfc="none", mec="white", mew=1.5)
    axes.set_xlim(-l_half, l_half)
    axes.set_ylim(-m_half, m_half)
    axes.set_xlabel("l (east)")
    axes.set_ylabel("m (north)")
    axes.figure.colorbar(image, ax=axes, label="mean power, dB relative to the strongest")
