"""Names that a file has for a dataset's axes, as netCDF writes them, beside those of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import h5py
import numpy as np

from workflow.config.axis_names import (
    PAIR,
    SYNONYMS,
    WORDS,
    among,
    check_names,
    in_own_words,
    operand_axis,
)
from workflow.files.text_attributes import LONGEST_NAME, guarded_once
from workflow.inputs.axes import AxisError, AxisMap, Operand

_LABELS = ", or where the file is wrong its dimension scales or labels"
_OPERANDS = {*WORDS.values(), *SYNONYMS.values()}
"""Names of operands' axes."""
_EXCHANGED = ("time", "frequency")
_LISTS = ("axis", "axes", "dims", "dimensions", "_ARRAY_DIMENSIONS")
"""Attributes with the names of a dataset's axes where it has neither labels nor scales.

The first is that of files of CHIME and others on draco, the last that of arrays of xarray.
"""
_MAX_POLARIZATIONS = 4
"""Products of two feeds; of voltages there are two."""
OF_VISIBILITIES = ("integration", "input", "conjugated_input")
"""Names of axes of visibilities, which as an array's covariances have other ones (`SYNONYMS`)."""
_NO_VALUES = "This is a netCDF dimension but not a netCDF variable"


def dimension_names(dataset: h5py.Dataset) -> list[str] | None:
    """Return the names of a dataset's axes in small letters; None where none has one.

    They are labels, or the names of dimension scales, or those of an attribute (`_LISTS`), in the
    words of operands, and "" for an axis without a name. A scale has that of its dataset, or of its
    attribute NAME where that alone is the name of an operand's axis.
    """
    found = _names(dataset)
    return found and [in_own_words(name) for name in found]


def _names(dataset: h5py.Dataset) -> list[str] | None:

    def read() -> list[str]:
        scales = [[_name_of_scale(scale) for scale in one.values()] for one in dataset.dims]
        labels = [str(one.label) for one in dataset.dims]
        return [label or (some or [""])[0] for label, some in zip(labels, scales, strict=True)]

    if "DIMENSION_LIST" in dataset.attrs or "DIMENSION_LABELS" in dataset.attrs:
        found = guarded_once(dataset, "names of dimensions", read)
    else:
        listed = (_listed(dataset, name) for name in _LISTS if name in dataset.attrs)
        found = next((names for names in listed if names), None)
    if not found or not any(found):
        return None
    return [str(name) for name in found]


def _name_of_scale(scale: h5py.Dataset) -> str:
    own: str = scale.name.rsplit("/", 1)[-1]
    if in_own_words(own) in _OPERANDS:
        return own
    said = _said_of_scale(scale)
    return said if in_own_words(said) in _OPERANDS else own


def _said_of_scale(scale: h5py.Dataset) -> str:
    """Return the attribute NAME of a scale."""
    said = scale.attrs.get("NAME", "")
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def names_of_parts(datasets: Sequence[h5py.Dataset], key: str) -> list[str] | None:
    """Return `dimension_names` of a dataset, or of those of real and imaginary parts.

    Raises AxisError, which begins with ``key``, where both parts are one dataset, or have an axis
    of operands or of each other in another place: a study that names them by mistake would have
    numbers of neither. Other names may differ, as ``x_re`` and ``x_im``.
    """
    first, last = datasets[0], datasets[-1]
    if len(datasets) > 1 and first == last:
        raise AxisError(f"{key}: real and imaginary part are the same dataset, {first.name}")
    one, other = dimension_names(first), dimension_names(last)
    named = [(a, b) for a, b in zip(one or (), other or (), strict=False) if a and b and a != b]
    if any(a in (other or ()) or b in (one or ()) or {a, b} <= _OPERANDS for a, b in named):
        raise AxisError(
            f"{key}: real and imaginary part must have the same axes, and the file names those of "
            f"{first.name} {one}, and those of {last.name} {other}; correct the study{_LABELS}"
        )
    return one or other


def of_each_axis(names: list[str] | None) -> list[str] | None:
    """Return the names that a file gives axes, where each has one that a study may give it too."""
    try:
        check_names("", names or [""])
    except ValueError:
        return None
    return names


def names_by_file(
    operand: Operand, datasets: Sequence[h5py.Dataset], own: list[str] | None, entries: Any
) -> list[str] | None:
    """Return the names that a file gives the axes of an operand's datasets, where they tell all.

    An operand that may have any axes keeps the file's own names, since its inputs need not be
    antennas. For other operands each of ``own``, the names in the words of operands, must be a
    different axis of the operand; axes that ``entries``, the selection, drops by a number are
    excepted.
    """
    if operand.free:
        found = next(filter(None, map(_names, datasets)), [])
        names = [one.lower() for one in found]
        return of_each_axis([one if one in OF_VISIBILITIES else in_own_words(one) for one in names])
    if own is None or len({*own}) < len(own):
        return None
    by_name = entries.items() if isinstance(entries, Mapping) else ()
    dropped = {among(name, own) for name, entry in by_name if isinstance(entry, int)}
    return own if {*own} - dropped <= {*operand.axes, PAIR} else None


def _listed(dataset: h5py.Dataset, name: str) -> list[str] | None:
    """Return the texts of an attribute that has one for each axis, else None."""
    held = dataset.attrs.get_id(name)
    is_text = held.dtype.kind in "SU" or h5py.check_string_dtype(held.dtype) is not None
    if not is_text or held.shape != (dataset.ndim,) or held.dtype.itemsize > LONGEST_NAME:
        return None

    def read() -> list[str]:
        texts = np.ravel(dataset.attrs[name]).tolist()
        return [one.decode("utf-8", "replace") if isinstance(one, bytes) else one for one in texts]

    found: list[str] | None = guarded_once(dataset, f"names in {name}", read)
    return found


def dimension_scales(dataset: h5py.Dataset) -> list[str]:
    """Return the path of what a dataset's file has along each axis; empty where it has nothing.

    It is the dimension scale, as netCDF's coordinate variables are, of several the first that has a
    unit or names. netCDF writes a scale without values for a dimension that has no values.
    """
    if "DIMENSION_LIST" not in dataset.attrs:
        return [""] * dataset.ndim

    def read() -> list[str]:
        found = []
        for axis, length in zip(dataset.dims, dataset.shape, strict=True):
            scales = [one for one in axis.values() if one.shape[:1] == (length,)]
            scales = [one for one in scales if not _is_empty(one)]
            found.append(str(next(filter(tells, scales), scales[0]).name) if scales else "")
        return found

    return guarded_once(dataset, "dimension scales", read) or [""] * dataset.ndim


def tells(scale: h5py.Dataset) -> bool:
    """Return whether a scale has a unit or names, and does not only count."""
    return "units" in scale.attrs or scale.dtype.kind in "SO"


def _is_empty(scale: h5py.Dataset) -> bool:
    """Return whether a scale is what netCDF writes for a dimension without values."""
    return _said_of_scale(scale).startswith(_NO_VALUES)


def order_by_file(
    name: str, operand: Operand, own: Sequence[str], kept: Sequence[str], found: AxisMap
) -> str:
    """Return an error's text where a dataset is read in another order than its own names have.

    ``kept`` are those ``own`` names that a selection leaves. The text is empty where each axis of
    the operand's is read in the place that has its name. Other names tell nothing, and one that
    stands there twice does not, as in a square of antennas.
    """
    read_as = [axis for axis in found.axes if axis not in found.missing]
    known = [one for one in kept if one in operand.axes and list(kept).count(one) == 1]
    if all(one == axis for one, axis in zip(kept, read_as, strict=True) if one in known):
        return ""
    where = (
        f"{name} names its axes {list(own)}, and is read as {read_as} where input.axes says nothing"
    )
    if len(known) < len(kept):
        return f"{where}; name its axes in input.axes.{operand.name}, of {list(operand.axes)}"
    given = [
        one if one.isascii() and one.isidentifier() else f"dropped_{number}"
        for number, one in enumerate(own)
    ]
    return f"{where}; add `axes: {{{operand.name}: [{', '.join(given)}]}}` to the input"


def by_name_or_place(
    operand: Operand, rank: int, own: Sequence[str] | None
) -> Sequence[str] | None:
    """Return the names of the ``rank`` axes of a dataset, where the study names none of them.

    They are the file's ``own`` names. An axis whose own name is unknown to the operand is named by
    its place, unless another axis has the name of that place.
    """
    by_place = operand.by_place(rank)
    if own is None or by_place is None:
        return own or by_place
    return [
        name if name in operand.axes or place in own else place
        for name, place in zip(own, by_place, strict=True)
    ]


def moved_by_number(
    name: str, operand: Operand, own: Sequence[str] | None, kept: Sequence[bool],
    lengths: Sequence[int],
) -> str:  # fmt: skip
    """Return an error's text where a number drops an axis between others that nothing names.

    Those before it would move to the places of the next ones, channels to that of polarizations, or
    stay in their own. Behind all of them, as for matrices at one frequency, an axis that the
    operand lacks is dropped, as in a dataset with more axes than it has (`Operand.by_place`).
    ``kept`` says of each axis whether it stays, ``lengths`` are those of the ones that do; ``own``
    are the file's names; one that is also the operand's tells which axis it is.
    """
    rank, here = len(kept), operand.by_place(len(kept))
    places = [place for place, there in enumerate(kept) if there]
    pairs = zip(places, lengths, strict=True)
    moved = [place for place, n in pairs if n > 1 and not all(kept[place : places[-1]])]
    if here is None or not moved or any(own[place] in operand.axes for place in moved if own):
        return ""
    return (
        f"{name} has {rank} axes that nothing names, and a number drops one between others; what "
        f"is left may be {[here[place] for place in places]} or {[*here[rank - len(places) :]]}: "
        f"name all {rank} in input.axes.{operand.name}"
    )


def guessed_polarizations(
    name: str, operand: Operand, own: Sequence[str] | None, rank: int, found: AxisMap
) -> str:
    """Return an error's text where an axis is read as polarizations that may be another axis.

    Nothing names it: channels of a dataset without polarizations would be taken for these, and
    multiplied with each other. The place says what it is only where the dataset's ``rank`` axes are
    all of the operand's axes, and it has no more entries than an array has polarizations.
    """
    count = dict(zip(found.axes, found.shape, strict=True)).get("polarization", 1)
    most = _MAX_POLARIZATIONS if rank == len(operand.axes) else 1
    if count <= most or "polarization" in (own or ()):
        return ""
    axes = [axis for axis in found.axes if axis not in found.missing]
    return (
        f"{name} is read as {axes} where input.axes says nothing, and its {count} "
        "polarizations may be entries of another axis, such as channels; name its axes in "
        f"input.axes.{operand.name}"
    )


def check_exchanged(
    name: str, operand: str, own: Sequence[str], given: Sequence[str], otherwise: str = _LABELS
) -> None:
    """Raise AxisError where a study exchanges time or frequency with another axis of a file.

    That is where the names ``given`` have it elsewhere than the file's ``own``, and another of
    these or the other of the two in its place, or it in that of an axis without a name. A name of
    the study's own in its place is meant, and other axes may be exchanged on purpose, as for a
    matrix that is meant transposed. ``otherwise`` is what else than the study a user may correct.
    """
    named = [operand_axis(one) for one in given]
    for own_name, axis in zip(own, named, strict=False):
        if axis == own_name or own_name not in named or own_name not in _EXCHANGED:
            continue
        there = own[named.index(own_name)] if named.index(own_name) < len(own) else ""
        if axis in (*own, *_EXCHANGED) or not there:
            raise AxisError(
                f"input.axes.{operand}: {name} names its axes {list(own)}, and the study "
                f"{list(given)}; correct the study{otherwise}"
            )


def axes_by_matlab(name: str, operand: Operand, rank: int) -> str:
    """Return the message for a dataset of MATLAB with ``rank`` axes, none of which is named."""
    here = list(operand.axes[-rank:][::-1])
    return (
        f"{name} was written by MATLAB, so its axes lie in the file in reverse; say which they "
        f"are: input.axes.{operand.name}: {here}, or others"
    )
