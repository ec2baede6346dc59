"""Pictures of products, reduced to what a page can show."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workflow.data import Coordinate, Product, power

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Array = npt.NDArray[Any]


def decibels(powers: Array) -> Array:
    """Return 10 log10 of powers over the largest.

    Powers that are 0 or not finite become NaN, which is not drawn.
    """
    largest = np.max(powers, initial=0, where=np.isfinite(powers))
    shown = np.isfinite(powers) & (powers > 0)
    ratio = np.divide(powers, largest, out=np.full(powers.shape, np.nan), where=shown)
    return np.asarray(10 * np.log10(ratio))


def label_whole(*counting: Axis) -> None:
    """Label whole numbers alone, along axes that count."""
    from matplotlib.ticker import MaxNLocator

    for axis in counting:
        axis.set_major_locator(MaxNLocator("auto", integer=True))


_LONGEST_BITS = 24
"""Characters of classical bits that stand below a bar."""
MAX_TITLE = 70
"""Letters of a line above a picture of the usual width."""


def title_of(product: Product, leading: int = 0) -> str:
    """Return the product's title in lines that fit, and which entry of its leading axes is drawn.

    It is the first one, of each of the ``leading`` axes that has several.
    """
    said = []
    for axis, length in zip(product.axes[:leading], product.data.shape, strict=False):
        one = product.coordinates.get(axis)
        if length < 2:
            continue
        if one is None or one.values.ndim != 1:
            said.append(f"{axis} 0")
        elif one.values.dtype.kind in "fiu":
            (value,), label = labelled("", one.values[:1], one.units)
            # Nine digits: a channel of the hydrogen line is some kHz of 1.420405751 GHz.
            said.append(f"{axis} {value:.9g} {label.strip(' ()')}".rstrip())
        else:
            said.append(f"{axis} {one.values[0]}")
    return "\n".join([*textwrap.wrap(product.title, MAX_TITLE), *([", ".join(said)] * bool(said))])


_PREFIXES = {1e9: "G", 1e6: "M", 1e3: "k", 1.0: "", 1e-3: "m", 1e-6: "µ", 1e-9: "n"}
_PREFIXED = ("s", "Hz", "m")
_NARROW = 1e-4
"""Part of the largest value; labels of values within less of it would differ behind 4 digits."""


def labelled(name: str, values: Array, units: str) -> tuple[Array, str]:
    """Return the values along an axis and its label, in a unit of up to 3 digits before the point.

    This holds for s, Hz and m, as people read delays and frequencies; other units stay. Values of a
    narrow band are less the one in its middle, which the label says in nine digits.
    """
    known = values[np.isfinite(values)]
    largest = float(np.max(np.abs(known), initial=0))
    if units not in _PREFIXED or largest == 0:
        return values, f"{name} ({units})" if units else name
    if 0 < np.ptp(known) < _NARROW * largest:
        middle = float(f"{known[len(known) // 2]:.9g}")
        (shown,), unit = labelled("", np.array([middle]), units)
        return labelled(f"{name} less {shown:.9g} {unit.strip(' ()')}", values - middle, units)
    size = next((size for size in _PREFIXES if largest >= size), min(_PREFIXES))
    return values / size, f"{name} ({_PREFIXES[size]}{units})"


def of_equal_steps(name: str, values: Array, label: str) -> tuple[Array, str]:
    """Return the values along an axis of an image and its label, the entries where steps differ.

    An image's cells are equally wide, so that values with gaps would stand beside other cells:
    none may be off its own by more than half of one.
    """
    even = np.linspace(values[0], values[-1], len(values))
    if np.abs(values - even).max() <= abs(even[-1] - even[0]) / max(1, len(values) - 1) / 2:
        return values, label
    return np.arange(len(values)), f"entry along {name}, whose steps are not equal"


def draw_likeliest(axes: Axes, amplitudes: Array, most: int) -> None:
    """Draw probabilities of the likeliest basis states as bars, in the order of their numbers."""
    probability = power(amplitudes)
    shown = min(most, probability.size)
    likeliest = np.sort(_largest(probability, shown))
    axes.bar(np.arange(shown), probability[likeliest])
    axes.set_xticks(
        np.arange(shown), [f"|{number}⟩" for number in likeliest], rotation=60, ha="right"
    )
    axes.set_xlabel(f"basis state{_of_all('likeliest', shown, probability.size)}")
    axes.set_ylabel("probability")


def draw_outcomes(
    axes: Axes, values: Array, outcomes: Array, most: int, what: str,
    errors: Array | None = None, bits: Coordinate | None = None,
) -> None:  # fmt: skip
    """Draw the largest values as bars, counts or probabilities, in the order of their outcomes.

    Each has its standard error where there are ``errors``, and short classical ``bits`` in its
    name.
    """
    shown = min(most, values.size)
    largest = np.sort(_largest(values, shown))
    axes.bar(np.arange(shown), values[largest], yerr=None if errors is None else errors[largest])
    labels, beside = [f"|{outcome}⟩" for outcome in outcomes[largest]], ""
    if bits is not None and len(bits.values[0]) <= _LONGEST_BITS:
        labels = [f"{one}  {of}" for one, of in zip(labels, bits.values[largest], strict=True)]
        beside = f", and {bits.long_name}"
    axes.set_xticks(np.arange(shown), labels, rotation=60, ha="right")
    axes.set_xlabel(f"outcome{beside}{_of_all('most frequent', shown, values.size)}")
    axes.set_ylabel(what)


def draw_strings(
    axes: Axes, values: Array, strings: Sequence[str], errors: Array | None = None
) -> None:
    """Draw the value of each Pauli string as a bar, named where there are few short ones.

    Each has its standard error where there are ``errors``.
    """
    axes.bar(np.arange(values.size), values, yerr=errors)
    if values.size <= 24 and max(map(len, strings)) <= 20:
        axes.set_xticks(np.arange(values.size), list(strings), rotation=60, ha="right")
    axes.set_xlabel("Pauli string")
    axes.set_ylabel("expectation value")


def _of_all(which: str, shown: int, size: int) -> str:
    """Return how many of all are shown, nothing where all are."""
    return f" (the {shown} {which} of {size})" if shown < size else ""


def _largest(values: Array, count: int) -> Array:
    """Return where the largest ``count`` of (n,) values are, the first of equal ones.

    NaN come last.
    """
    least = np.partition(-values, count - 1)[count - 1]
    near = np.flatnonzero(~(-values > least))  # a state has far more amplitudes than these
    return np.asarray(near[np.argsort(-values[near], kind="stable")[:count]])


def block_means(values: Array, most: int) -> Array:
    """Return a matrix reduced to at most ``most`` rows and columns by the means of equal blocks.

    The rest at the end of an axis is averaged as a smaller block.
    """
    for axis in (0, 1):
        step = -(-values.shape[axis] // most)
        starts = np.arange(0, values.shape[axis], step)
        sums = np.add.reduceat(values, starts, axis=axis)
        counts = np.diff(np.append(starts, values.shape[axis]))
        values = sums / np.expand_dims(counts, 1 - axis)
    return values


def edges_of_blocks(values: Array, most: int) -> tuple[float, float]:
    """Return where the first of `block_means` begins and the last ends, along one axis.

    Each of (n,) ``values``, at equal steps, is the middle of its cell. A smaller block at the end
    is drawn as wide as the others.
    """
    count = len(values)
    step = float(values[-1] - values[0]) / (count - 1) if count > 1 else 1.0
    first, size = float(values[0]) - step / 2, -(-count // most)
    return first, first + step * size * -(-count // size)
