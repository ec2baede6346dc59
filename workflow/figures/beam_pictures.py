"""Pictures of beams: mean power over the direction cosines of a grid, or along a line of beams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workflow.data import Coordinate
from workflow.figures import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]
_SHOWN = np.linspace(-1, 1, 201)
"""Direction cosines of a pattern."""
_FAINTEST_DB = -60
"""Range of a pattern's colours, which show nulls."""


def draw_beams(means: Array, there: Mapping[str, Coordinate], axes: Axes) -> None:
    """Draw the mean power of beams on no grid: at l and m, over l, or over the beams' numbers.

    Beams of several m are dots at their directions, the others stand along a line.
    """
    direction, across = there.get("l"), there.get("m")
    if direction is not None and across is not None and np.ptp(across.values) > 0:
        dots = axes.scatter(
            direction.values, across.values, c=pictures.decibels(means), cmap="viridis", s=80,
            edgecolors="grey",
        )  # fmt: skip
        axes.set_xlabel("l (east)")
        axes.set_ylabel("m (north)")
        axes.margins(0.2)
        axes.grid(alpha=0.3)
        axes.figure.colorbar(dots, ax=axes, label="mean power, dB relative to the strongest")
        return
    where = np.arange(len(means)) if direction is None else direction.values
    axes.plot(where, pictures.decibels(means), marker="." if len(means) < 65 else "")
    if direction is None:
        pictures.label_whole(axes.xaxis)
    axes.set_xlabel("beam number" if direction is None else "direction cosine l (east)")
    axes.set_ylabel("mean power, dB relative to the strongest")
    axes.grid(alpha=0.3)


def draw_map(
    means: Array, there: Mapping[str, Coordinate], sources: Iterable[tuple[float, float]],
    axes: Axes,
) -> None:  # fmt: skip
    """Draw means (m, l) of a grid at the beams' l and m, with circles at sources."""
    l, m = (  # noqa: E741
        _edges(there[name].values, count)
        for name, count in zip("lm", means.shape[::-1], strict=True)
    )
    image = axes.imshow(
        pictures.decibels(means), origin="lower", cmap="viridis", interpolation="nearest",
        extent=(*l, *m), aspect="equal",
    )  # fmt: skip
    for at in sources:
        axes.plot(*at, marker="o", ms=10, mfc="none", mec="white", mew=1.5)
    axes.set_xlim(*l)
    axes.set_ylim(*m)
    axes.set_xlabel("l (east)")
    axes.set_ylabel("m (north)")
    axes.figure.colorbar(image, ax=axes, label="mean power, dB relative to the strongest")


def _edges(values: Array, count: int) -> tuple[float, float]:
    """Return where pixels of ``count`` equal steps of values begin and end.

    That is half a step beyond the outer ones, so that each pixel's centre is its beam's direction.
    """
    half = float(np.ptp(values)) / max(1, count - 1) / 2
    return float(values.min()) - half, float(values.max()) + half


def draw_pattern(
    weights: Array, waves: Callable[[Array], Array], linear: bool, look: tuple[float, float],
    sources: Iterable[tuple[float, float]], axes: Axes,
) -> None:  # fmt: skip
    """Draw the power that weights (antenna,) take from each direction, over l or over l and m.

    Args:
        weights: weights of one beam.
        waves: (direction, antenna) of waves from (direction, 2) l and m.
        linear: antennas lie in a line to the east, which resolves l alone.
        look: l and m of the beam, marked by a cross.
        sources: l and m of each, marked by circles.
        axes: where it is drawn.
    """
    grid = np.meshgrid(_SHOWN, [0.0] if linear else _SHOWN)
    l, m = (x.ravel() for x in grid)  # noqa: E741
    taken = pictures.decibels(np.square(np.abs(waves(np.stack([l, m], axis=-1)) @ weights)))
    axes.grid(alpha=0.3)
    if linear:
        axes.plot(l, taken)
        for at in sources:
            axes.axvline(at[0], color="grey", ls=":", lw=1)
        axes.plot(look[0], taken[np.abs(l - look[0]).argmin()], marker="+", ms=12, mew=2)
        axes.set_xlabel("direction cosine l (east)")
        axes.set_ylabel("power, dB relative to the strongest")
        return
    taken[np.hypot(l, m) > 1] = np.nan
    shown = axes.imshow(
        taken.reshape(len(_SHOWN), -1), origin="lower", cmap="viridis", aspect="equal",
        interpolation="nearest", extent=(-1, 1, -1, 1), vmin=_FAINTEST_DB, vmax=0,
    )  # fmt: skip
    for at in sources:
        axes.plot(*at, marker="o", ms=10, mfc="none", mec="white", mew=1.5)
    axes.plot(*look, marker="+", ms=12, mew=2, color="white")
    axes.set_xlabel("l (east)")
    axes.set_ylabel("m (north)")
    axes.figure.colorbar(shown, ax=axes, label="power, dB relative to the strongest")
