"""Names of the axes that come out of Fourier transforms and filter banks."""

from __future__ import annotations

from workflow.config.axis_names import operand_axis, unlike
from workflow.data import Staged

CHANNELS = "frequency"
_FORWARD = {"sample": "frequency", "time": "frequency", "frequency": "delay"}
_INVERSE = {"sample": "sample", "frequency": "time", "delay": "frequency"}
"""Names that axes become; others have `_SUFFIX` at the end, or lose it."""
_SUFFIX = "_frequency"
_FINE_CHANNELS = "fine_frequency"
"""The axis of a filter bank's channels where its samples have frequencies already."""


def of_transform(staged: Staged, *, inverse: bool) -> str:
    """Return the name of the axis that a transform of the samples' last one has."""
    return _of_last(staged, inverse, _beside(staged))


def before_transform(staged: Staged) -> str:
    """Return the name that the samples' last axis had before a forward transform.

    Another axis may have it now, as that of rates whose times were transformed too.
    """
    return _of_last(staged, True, [])


def of_spectra(staged: Staged) -> str:
    """Return the name of the axis of bins, where the samples' last one stays as that of spectra."""
    return _of_last(staged, False, [*_beside(staged), staged.axes["samples"][-1]])


def of_channels(staged: Staged) -> str:
    """Return the name of the axis of channels, where the last one stays as that of spectra."""
    beside = [*_beside(staged), staged.axes["samples"][-1]]
    coarse = CHANNELS in map(operand_axis, beside)
    return unlike(beside, _FINE_CHANNELS if coarse else CHANNELS, "fine")


def _of_last(staged: Staged, inverse: bool, beside: list[str]) -> str:
    axis = staged.axes["samples"][-1]
    if inverse:
        own = axis.removesuffix(_SUFFIX) if _SUFFIX in axis else f"{axis}_sample"
        return unlike(beside, _INVERSE.get(axis, own), axis)
    return unlike(beside, _FORWARD.get(axis, f"{axis}{_SUFFIX}"), axis)


def _beside(staged: Staged) -> list[str]:
    """Return the samples' axes but the last, and the names of what else stands along these.

    An axis that comes out has none of them: it would take the place of the other in the product.
    """
    *axes, last = staged.axes["samples"]
    along = [(name, one.of(name)) for name, one in staged.coordinates.items()]
    return [*axes, *(name for name, of in along if last not in of and set(of) & set(axes))]
