"""The axes of one operand's datasets in a user's open HDF5 file, and which part is selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import h5py

from workflow.config.axis_names import operand_axis
from workflow.config.file_input import FileInput
from workflow.files.input_error import InputError
from workflow.files.other_files import by_matlab
from workflow.files.text_attributes import unit_of
from workflow.files.units import check_place, parted
from workflow.inputs.axes import AxisError, AxisMap, Operand, map_axes, pair_axis
from workflow.inputs.dimension_names import (
    axes_by_matlab,
    by_name_or_place,
    check_exchanged,
    dimension_scales,
    guessed_polarizations,
    moved_by_number,
    names_by_file,
    names_of_parts,
    of_each_axis,
    order_by_file,
)
from workflow.inputs.named_entries import without_names
from workflow.inputs.operand_datasets import dataset_paths, open_datasets
from workflow.inputs.selections import Entries, Picked, SelectionError, pick


class OperandAxes:
    """The datasets of one operand, their axes and the part of them that is selected.

    Entries that a study selects by their names are index 0, until `select` is called with others.

    Attributes:
        names: names of the axes, as the study has them; where the study names none, those of the
            file, if they say which axes of the operand they are. None where neither does.
        own_names: the file's where ``names`` is None; None where it has none.
        pair: the axis of both parts of complex numbers; None where there is none.
        picked: the selected part.
    """

    def __init__(self, file: h5py.File, source: FileInput, operand: Operand) -> None:
        name = operand.name
        self.key, self.operand = f"input.{name}", operand
        paths = dataset_paths(getattr(source, name))
        if operand.real and len(paths) > 1:
            raise InputError(f"{self.key} is real: it must be one dataset, got {paths}")
        self.datasets = open_datasets(file, source, paths, self.key)
        self.name = " with ".join(str(dataset.name) for dataset in self.datasets)
        shapes = [dataset.shape for dataset in self.datasets]
        if shapes[0] != shapes[-1]:
            raise InputError(
                f"{self.key}: real and imaginary part must have the same shape, "
                f"got {shapes[0]} and {shapes[1]}"
            )
        self.names = source.axes_of(name)
        entries = source.select.get(name)
        try:
            own = names_of_parts(self.datasets, self.key)
            if self.names is None:
                self.names = names_by_file(operand, self.datasets, own, without_names(entries))
            self.own_names = own if self.names is None and not operand.free else None
            check_exchanged(self.name, name, own or (), self.names or ())
            self.pair = pair_axis(self.names, shapes[0], f"input.axes.{name}", self.name)
        except AxisError as error:
            raise InputError(str(error)) from None
        self._by_name = self.names or of_each_axis(own)
        self.select(lambda _: without_names(entries))

    def select(self, entries: Callable[[Sequence[str] | None], Entries | None]) -> None:
        """Select entries of the datasets, which a function returns.

        It is given the names that a study may call the axes by; None where it goes by their places.
        Raises InputError for entries that do not fit.
        """
        by_name = self._by_name
        try:
            self.picked: Picked = pick(entries(by_name), self.datasets[0].shape, by_name, self.pair)
        except SelectionError as error:
            raise InputError(f"input.select.{self.operand.name}: {self.name} {error}") from None

    def mapped(self) -> AxisMap:
        """Return how the selected part becomes the operand.

        Raises InputError for axes that do not fit.
        """
        shape, names = self.picked.shape, self.names
        kept = None
        if names is not None:
            kept = [n for n, axis in zip(names, self.picked.axes, strict=True) if axis.kept]
        what = f"{self.name} has {len(shape)} of shape {shape}"
        if names is None and sum(n > 1 for n in shape) > 1 and by_matlab(self.datasets):
            raise InputError(f"{self.key}: {axes_by_matlab(self.name, self.operand, len(shape))}")
        there = [axis.kept for axis in self.picked.axes if not axis.pair]
        try:
            found = map_axes(self.operand, kept, shape, self.key, what, there)
        except AxisError as error:
            raise InputError(str(error)) from None
        self._check_order(found)
        return found

    def _check_order(self, found: AxisMap) -> None:
        """Raise InputError where nobody names the axes, or the file alone in another order."""
        own, rank = self.own_names, len(self.picked.axes)
        if self.names is not None:
            return
        there = [axis.kept for axis in self.picked.axes]
        if wrong := moved_by_number(self.name, self.operand, own, there, self.picked.shape):
            raise InputError(f"input.select.{self.operand.name}: {wrong}")
        if own is not None:
            kept = [name for name, axis in zip(own, self.picked.axes, strict=True) if axis.kept]
            if wrong := order_by_file(self.name, self.operand, own, kept, found):
                raise InputError(f"{self.key}: {wrong}")
            self._check_places(found)
        if wrong := guessed_polarizations(self.name, self.operand, own, rank, found):
            raise InputError(f"{self.key}: {wrong}")

    def _check_places(self, found: AxisMap) -> None:
        """Raise InputError where an axis by its place has what stands along another quantity."""
        dataset = self.datasets[0]
        scales = dimension_scales(dataset)
        kept = [path for path, axis in zip(scales, self.picked.axes, strict=True) if axis.kept]
        for path, own in zip(kept, found.given, strict=True):
            if path and path in dataset.file:
                units = parted(unit_of(dataset.file[path]))[0]
                check_place(f"{self.key}: {self.name}", path.rpartition("/")[2], own, units)

    def axis_names(self) -> Sequence[str] | None:
        """Return the names of the dataset's axes: by the study, else by the file or their places.

        None where they may have any names.
        """
        return self.names or by_name_or_place(self.operand, len(self.picked.axes), self.own_names)

    def dataset_axis(self, axis: str) -> int | None:
        """Return the place of an operand's axis in the dataset, also where a number drops it."""
        mapped = self.mapped()
        place = mapped.place(axis)
        if place is not None:
            return [number for number, one in enumerate(self.picked.axes) if one.kept][place]
        pairs = enumerate(zip(self.axis_names() or (), self.picked.axes, strict=False))
        dropped = [n for n, (name, one) in pairs if operand_axis(name) == axis and not one.kept]
        return dropped[0] if dropped and axis in mapped.missing else None
