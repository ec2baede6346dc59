"""Coordinates that a user's file has for a dataset: dimension scales, and others beside them.

The latter are the datasets that netCDF's attribute ``coordinates`` names (CF's conventions, section
5, auxiliary coordinate variables). Argand's products have the attribute too, for what stands along
an axis under another name.
"""

from __future__ import annotations

import contextlib
import itertools
from typing import NamedTuple

import h5py

from workflow.config.axis_names import PAIR, check_names, in_own_words, operand_axis
from workflow.data import SELECTED
from workflow.files.links import DatasetError, find_dataset
from workflow.files.text_attributes import guarded_once, text_attribute
from workflow.inputs.antennas_of_inputs import tells_antennas
from workflow.inputs.dimension_names import dimension_names, dimension_scales, tells
from workflow.inputs.operand_axes import OperandAxes
from workflow.storage.gathered import SIGNALS
from workflow.storage.product_arrays import BESIDE_AXES, PRODUCT

_ATTRIBUTE = "coordinates"
_LONGEST = 1 << 14
"""Characters of the attribute."""
_MAX_NAMES = 256
"""Names in it, and of datasets beside a product, that are read."""


class OwnCoordinate(NamedTuple):
    """A dataset that stands along an axis of an operand's.

    Attributes:
        name: the name of the coordinate.
        number: the place of the axis in the operand's dataset; None for an axis that the operand
            lacks, whose one value is a scalar.
        path: the path of the dataset.
        axis: the axis's name, where ``name`` is one of its own; else "".
    """

    name: str
    number: int | None
    path: str
    axis: str = ""


def own_coordinates(
    file: h5py.File, operand: OperandAxes, *, external: bool
) -> tuple[list[OwnCoordinate], dict[str, str]]:
    """Return the file's own coordinates along an operand's axes, and why others are none.

    Dimension scales come first. The reasons are by path. There are no coordinates where a link
    leads to the dataset from ``file``, because their paths differ there. ``external`` says whether
    links into other files are followed. Raises InputError where the attribute is damaged.
    """
    dataset, axes = operand.datasets[0], _axes_of(operand)
    if dataset.file.filename != file.filename:
        return [], {}
    scales = dimension_scales(dataset)
    left_out = _of_unnamed(operand, scales) if operand.names is None else {}
    if not axes:
        return [], left_out
    found = [OwnCoordinate(axis, n, scales[n]) for n, axis in axes.items() if scales[n]]
    names = text_attribute(dataset, _ATTRIBUTE, _LONGEST).split()[:_MAX_NAMES]
    own = (dimension_names(dataset) or []) if names else []
    columns = "column" in operand.operand.axes
    for name in dict.fromkeys(names):
        path = _path(dataset, name) or name
        if path in scales:
            continue
        if _is_of_lacking(operand, path, external):
            found.append(OwnCoordinate(in_own_words(path.rpartition("/")[2]), None, path))
            continue
        try:
            called, number = _along(dataset, path, own, external)
        except (DatasetError, ValueError) as error:
            left_out[path] = f"{path}: {error}"
            continue
        if number in axes:
            called = _of_renamed(dataset, path, called, axes[number], external)
            if axes[number] == "antenna" and tells_antennas(called) and not columns:
                found = [one for one in found if one.name != "antenna"]  # numbers of inputs
                called = "antenna"
            found.append(OwnCoordinate(called, number, path, axes[number]))
    return found, left_out


def _of_unnamed(operand: OperandAxes, scales: list[str]) -> dict[str, str]:
    """Return why scales are no coordinates, of axes whose names are not the operand's.

    They are those that have a unit or names. ``nu`` may be any axis, and read by its place it may
    be another one than it is.
    """
    own, axes, file = operand.own_names or (), operand.operand.axes, operand.datasets[0].file
    return {
        path: f"{path}: the file names its axis {name!r}, which is none of {list(axes)}; name all "
        f"axes in input.axes.{operand.operand.name}"
        for path, name in zip(scales, own, strict=False)
        if name not in axes and path and path in file and tells(file[path])
    }


def selected_before(file: h5py.File, dataset: h5py.Dataset) -> dict[str, tuple[str, str]]:
    """Return the paths of what stands beside a product of Argand's along axes that were dropped.

    They are by name, such as ``selected_time``, the time of the first sample that is transformed,
    with the axis of each: ``selected_beam`` of ``selected_l``.
    There are none where a link leads to the dataset from ``file``, as in `own_coordinates`.
    """
    group = _group_of_product(dataset)
    if group is None or dataset.file.filename != file.filename:
        return {}
    found: dict[str, tuple[str, str]] = {}
    for name in itertools.islice(group, _MAX_NAMES):
        path = f"{group.name}/{name}"
        with contextlib.suppress(DatasetError):
            if name.startswith(SELECTED):
                one = find_dataset(file, path)
                if one.shape == (1,) and BESIDE_AXES in one.attrs:
                    found[name] = path, text_attribute(one, BESIDE_AXES, _LONGEST)
    return found


def _group_of_product(dataset: h5py.Dataset) -> h5py.Group | None:
    """Return the group that has what stands beside a product of Argand's; None for other datasets.

    The product has a second name in the root group.
    """
    if PRODUCT in dataset.parent.attrs:
        return dataset.parent
    with contextlib.suppress(DatasetError):
        same = find_dataset(dataset.file, f"/{SIGNALS}/{str(dataset.name).rpartition('/')[2]}")
        if same == dataset and PRODUCT in same.parent.attrs:
            return same.parent
    return None


def _of_renamed(dataset: h5py.Dataset, path: str, called: str, axis: str, external: bool) -> str:
    """Return the name that a coordinate of a product has beside an operand's axis of another name.

    It begins with the axis's name, as `ProductOperand` has it for a workload of the same study:
    antennas of inputs that are read as antennas are ``antenna_input_antenna``.
    """
    found = find_dataset(dataset.file, path, external=external)
    own = text_attribute(found, BESIDE_AXES, _LONGEST)
    return called if own in ("", axis) else f"{axis}_{called}"


def _is_of_lacking(operand: OperandAxes, path: str, external: bool) -> bool:
    """Return whether a path leads to a scalar for an axis that the operand has and the data lack.

    An example is the frequency of the one channel that xarray has selected.
    """
    name = in_own_words(path.rpartition("/")[2])
    lacking = operand.operand.lacking(operand.mapped())
    if operand_axis(name) not in lacking or not path.startswith("/"):
        return False
    try:
        return bool(find_dataset(operand.datasets[0].file, path, external=external).shape == ())
    except DatasetError:
        return False


def _axes_of(operand: OperandAxes) -> dict[int, str]:
    """Return the name of each axis of an operand's dataset by its place, of those that have one.

    Axes that a number drops have one too. They go by the study's names, else by the file's own
    where those are the operand's.
    """
    found: dict[int, str] = {}
    for number, name in enumerate(operand.names or operand.own_names or ()):
        axes = {axis for axis in operand.mapped().axes if operand.dataset_axis(axis) == number}
        own = operand_axis(name)
        if name != PAIR and (operand.names is not None or own in axes):
            found[number] = axes.pop() if axes else name
    return found


def _along(dataset: h5py.Dataset, path: str, own: list[str], external: bool) -> tuple[str, int]:
    """Return the name of another dataset of the file, and the axis that it stands along.

    ``own`` are the names of the axes of ``dataset``. Raises DatasetError where there is none, and
    ValueError where it does not stand along one of these axes.
    """
    if not path.startswith("/"):
        raise DatasetError(f"{dataset.name} names it among its coordinates, and it is not there")
    found = find_dataset(dataset.file, path, external=external)
    called = in_own_words(path.rpartition("/")[2])
    check_names(f"{dataset.name} names it among its coordinates", [called])
    axes = dimension_names(found) or ([called] if _is_scale(found) else [])
    along = [axis for axis in axes if axis in own]
    if len(along) != 1 or axes[0] != along[0] or own.count(along[0]) != 1:
        raise ValueError(
            f"a coordinate stands along one axis, this one along {axes or 'none that it names'}, "
            f"of those of {dataset.name}, {own}"
        )
    return called, own.index(along[0])


def _is_scale(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset is a dimension scale; HDF5 may end a process by a damaged one."""
    return bool(guarded_once(dataset, "whether it is a scale", lambda: bool(dataset.is_scale)))


def _path(dataset: h5py.Dataset, name: str) -> str:
    """Return the path of a name in the dataset's group or one above it; "" where none has it."""
    first = name.strip("/").partition("/")[0].encode()
    folder = "" if name.startswith("/") else str(dataset.name).rpartition("/")[0]
    while first:
        group = dataset.file[folder or "/"]
        if isinstance(group, h5py.Group) and group.id.links.exists(first):
            return f"{folder}/{name.strip('/')}"
        if not folder:
            break
        folder = folder.rpartition("/")[0]
    return ""
