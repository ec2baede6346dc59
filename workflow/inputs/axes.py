"""The map from the axes of a dataset to those of an operand: names, order, missing ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from workflow.config.axis_names import PAIR, SYNONYMS, among, operand_axis
from workflow.config.mistakes import nearest

Array = npt.NDArray[Any]
_OF_SAMPLES = ("frequency", "polarization", "antenna")
"""Axes along which samples in time have one entry where they lack the axis."""


class AxisError(ValueError):
    """Axes that an operand cannot have; the text starts with a key of the config."""


@dataclass(frozen=True)
class Operand:
    """An operand that a file may hold: its name, its axes, and whether it is real.

    An operand that is ``free`` may have axes of other names, at most as many; the last of them is
    the one that is worked ``along``: the axis of the case, by name or by its place in the file, and
    the last where there is none. ``named`` says that the case must name one of several. An
    operand of ``amplitudes`` takes no real product of another workload, such as power.
    """

    name: str
    axes: tuple[str, ...]
    real: bool = False
    free: bool = False
    along: str | int | None = None
    named: bool = False
    amplitudes: bool = False

    def by_place(self, rank: int) -> tuple[str, ...] | None:
        """Return the names of the ``rank`` axes of a dataset that nothing names: the last axes.

        None for more axes than the operand has, and where they may have any names.
        """
        if self.free or rank > len(self.axes):
            return None
        return self.axes[len(self.axes) - rank :]

    def lacking(self, mapped: AxisMap) -> tuple[str, ...]:
        """Return the axes that data lack and whose one entry a study may say.

        Samples that are transformed may be of one channel, feed or antenna (`_OF_SAMPLES`).
        """
        if not self.free:
            return mapped.missing
        there = [axis for axis in mapped.axes if axis not in mapped.missing]
        return tuple(axis for axis in _OF_SAMPLES if axis not in there)


@dataclass(frozen=True)
class AxisMap:
    """The map from a dataset's kept axes to those of an operand.

    ``given`` and ``lengths`` are their names and lengths in the order of the file, ``order`` says
    in which one the operand has them; ``axes`` and ``shape`` are the operand's, with the
    ``missing`` ones of length 1.
    """

    given: tuple[str, ...]
    lengths: tuple[int, ...]
    order: tuple[int, ...]
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    missing: tuple[str, ...]

    def place(self, axis: str) -> int | None:
        """Return the place, among the kept axes of the file, of an axis of the operand.

        It is None where the axis is missing.
        """
        there = [name for name in self.axes if name not in self.missing]
        return dict(zip(there, self.order[-len(there) :], strict=True)).get(axis)

    def arranged(self, data: Array) -> Array:
        """Return data with the axes of the file as a contiguous array of the operand's shape."""
        return np.ascontiguousarray(data.transpose(self.order)).reshape(self.shape)

    def as_in_file(self, data: Array) -> Array:
        """Return a view of data of the operand's shape with the axes of the file."""
        ordered = [self.lengths[place] for place in self.order]
        return data.reshape(ordered).transpose(np.argsort(self.order))

    def __str__(self) -> str:
        """Return the order of axes, in words."""
        shown = sizes_in_words(self.axes, self.shape)
        parts = []
        if self.order != tuple(range(len(self.order))):
            parts.append(f"from {', '.join(self.given)}")
        if self.missing:
            parts.append(f"no {', '.join(self.missing)} there")
        return f"{shown} ({'; '.join(parts)})" if parts else shown


def sizes_in_words(axes: Sequence[str], shape: Sequence[int]) -> str:
    """Return each axis and its length."""
    return " x ".join(f"{axis} {length}" for axis, length in zip(axes, shape, strict=True))


def pair_axis(names: Sequence[str] | None, shape: Sequence[int], key: str, what: str) -> int | None:
    """Return the place of the axis that holds real and imaginary part; None where none does.

    Raises AxisError for another number of names than axes, and for an axis of both parts without
    two entries.
    """
    if names is None:
        return None
    if len(names) != len(shape):
        raise AxisError(
            f"{key}: {what} has {len(shape)} axes of shape {tuple(shape)}, so {len(shape)} names "
            f"are needed, got {list(names)}"
        )
    if PAIR not in names:
        return None
    number = list(names).index(PAIR)
    if shape[number] != 2:
        raise AxisError(
            f"{key}: the axis {PAIR!r} holds real and imaginary part and must have length 2, "
            f"{what} has shape {tuple(shape)}"
        )
    return number


def map_axes(
    operand: Operand,
    names: Sequence[str] | None,
    lengths: Sequence[int],
    key: str,
    what: str,
    kept: Sequence[bool] | None = None,
) -> AxisMap:
    """Return the map for the axes that a selection keeps.

    Args:
        operand: what they become.
        names: the kept axes by name, in the order of the file; None where the config has none.
        lengths: lengths of the same axes.
        key: the key of the operand in the config, such as ``input.samples``.
        what: the dataset and its shape, for messages.
        kept: which axes of the file these are, by whose places `Operand.along` counts; all of them
            where it is None.

    Raises:
        AxisError: too many axes, unknown ones, one twice, or none that is said to be worked along.
    """
    rank = len(operand.axes)
    if not 1 <= len(lengths) <= rank:
        count = f"at least 1 and at most {rank} axes" if rank > 1 else "one axis"
        advice = f"; an index in input.select.{operand.name} drops an axis" if lengths else ""
        raise AxisError(f"{key} must have {count} ({', '.join(operand.axes)}), but {what}{advice}")
    if 0 in lengths:
        raise AxisError(f"{key} must have elements along each of its axes, but {what}")
    if operand.free:
        return _free(operand, names, lengths, key, what, kept or [True] * len(lengths))
    if names is None:
        missing = operand.axes[: rank - len(lengths)]
        given = operand.axes[len(missing) :]
        return _mapped(given, operand.axes, lengths, missing)
    given = tuple(operand_axis(n) if n not in operand.axes else n for n in names)
    where = f"input.axes.{operand.name}"
    for name in given:
        if name not in operand.axes:
            others = [other for other, own in SYNONYMS.items() if own in operand.axes]
            hint = nearest(name, [*operand.axes, *others])
            raise AxisError(
                f"{where}: must be of {list(operand.axes)} and {PAIR!r}, got {name!r}{hint} "
                "(an index in input.select drops an axis)"
            )
        if given.count(name) > 1:
            raise AxisError(f"{where}: must name each axis once, got {list(names)}")
    return _mapped(given, operand.axes, lengths, tuple(a for a in operand.axes if a not in given))


def _free(
    operand: Operand,
    names: Sequence[str] | None,
    lengths: Sequence[int],
    key: str,
    what: str,
    kept_in_file: Sequence[bool],
) -> AxisMap:
    """Return the axes as named, or with the operand's own names, the one worked along last."""
    count = len(lengths)
    number = _along(operand, names, lengths, key, what, kept_in_file)
    order = [*(place for place in range(count) if place != number), number]
    kept = list(order)
    if names is None:
        # Leading axes of one entry say nothing, and a file may lack them.
        while len(kept) > 2 and lengths[kept[0]] == 1:
            kept = kept[1:]
        own = dict(zip(kept, operand.axes[-len(kept) :], strict=True))
        names = [own.get(place, "") for place in range(count)]
    axes, shape = tuple(names[place] for place in kept), tuple(lengths[place] for place in kept)
    missing = next(((a,) for a in operand.axes[-2::-1] if a not in axes), ()) * (len(axes) == 1)
    return AxisMap(
        tuple(filter(None, names)), tuple(lengths), tuple(order),
        (*missing, *axes), (1,) * len(missing) + shape, missing,
    )  # fmt: skip


def _along(
    operand: Operand,
    names: Sequence[str] | None,
    lengths: Sequence[int],
    key: str,
    what: str,
    kept_in_file: Sequence[bool],
) -> int:
    """Return the place of the axis that is worked along."""
    count, along = len(lengths), operand.along
    if isinstance(along, str):
        if names is None:
            raise AxisError(f"axis: {along!r} is a name, but {key} has none; give input.axes")
        along = among(along, names)
        if along not in names:
            raise AxisError(f"axis: must be of {list(names)}, got {along!r}{nearest(along, names)}")
        return list(names).index(along)
    if along is not None:
        rank = len(kept_in_file)
        if not -rank <= along < rank:
            raise AxisError(f"axis: must be within {-rank} to {rank - 1}, got {along}; {what}")
        if not kept_in_file[along]:
            raise AxisError(
                f"axis: {along} is the place of an axis that a number in input.select drops; "
                f"places count in the file, and {what}"
            )
        return sum(kept_in_file[: along % rank])
    if operand.named and math.prod(lengths) != lengths[-1]:
        shown = f" ({', '.join(names)})" if names else ""
        behind = list(kept_in_file)[::-1].index(True) + 1
        line = "`axis:` and its name" if names else f"`axis: -{behind}` for the last one"
        raise AxisError(
            f"{key} has {count} axes of shape {tuple(lengths)}{shown}, and nothing says which "
            f"of them is transformed; add {line} to the workload"
        )
    return count - 1


def _mapped(
    given: tuple[str, ...],
    axes: tuple[str, ...],
    lengths: Sequence[int],
    missing: tuple[str, ...],
) -> AxisMap:
    there = dict(zip(given, lengths, strict=True))
    order = tuple(given.index(axis) for axis in axes if axis in there)
    shape = tuple(there.get(axis, 1) for axis in axes)
    return AxisMap(given, tuple(lengths), order, axes, shape, missing)
