"""Another workload's product as an operand: selected, its axes mapped, in stretches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workflow.config.axis_names import operand_axis
from workflow.config.file_input import FileInput
from workflow.config.formats import FORMATS
from workflow.data import SELECTED, TAKEN, Array, Coordinate, Product, blank, is_blank
from workflow.drawn import Stretched
from workflow.files.input_error import InputError
from workflow.files.units import check_place
from workflow.inputs.axes import AxisError, AxisMap, Operand, map_axes
from workflow.inputs.input_operand import OperandHeader
from workflow.inputs.named_entries import are_names, has_names, numbered, without_names
from workflow.inputs.selected_offsets import above_selected, of_one_half
from workflow.inputs.selections import Picked, SelectionError, pick
from workflow.storage.products import read_product

STRETCH_BYTES = 64 << 20
"""Bytes of a product in memory at a time; at least one entry of the axis with the smallest."""


@dataclass(frozen=True)
class ProductArray:
    """A product file's data, read box by box with their checksums checked."""

    path: Path

    def __getitem__(self, spans: tuple[slice, ...]) -> Array:
        """Return the entries of a range of each axis."""
        found = read_product(self.path, part=[slice(one.start, one.stop) for one in spans])
        return found.data[tuple(slice(None, None, one.step) for one in spans)]

    def taken(self, picked: Picked) -> Array:
        """Return the selected values."""
        return picked.read(self)


class ProductOperand:
    """The operand that a product gives: ``product`` has its axes, shape, coordinates and unit.

    The axes are the operand's by their names in the product, or in ``input.axes``, where the
    operand has them all; else they are its last ones, in their order, where that makes none of the
    operand's axes another. ``coordinates`` are those that the study gives it. Raises InputError
    for a selection or axes that do not fit, and for a complex product where the operand is real.
    """

    def __init__(
        self,
        operand: Operand,
        product: Product,
        source: FileInput | None = None,
        what: str = "",
        coordinates: Collection[str] = (),
    ) -> None:
        name, self.product, self.given = operand.name, product, coordinates
        shape, what = product.data.shape, what or f"the product {product.name}"
        given = source.axes_of(name) if source is not None else None
        array = FORMATS[source.format].covariance if source is not None else None
        if given is not None and len(given) != len(shape):
            raise InputError(
                f"input.axes.{name}: {what} has the axes {list(product.axes)}, so {len(shape)} "
                f"names are needed, got {given}"
            )
        names = tuple(given or product.axes)
        try:
            entries = source.select.get(name) if source is not None else None
            self.picked: Picked = pick(without_names(entries), shape, names)
            if entries is not None and has_names(entries):
                self.picked = pick(numbered(entries, names, self._names_along), shape, names)
            kept = [n for n, axis in zip(names, self.picked.axes, strict=True) if axis.kept]
            fits = operand.free or given or all(operand_axis(n) in operand.axes for n in kept)
            shown = f"{what} has {len(kept)} ({', '.join(kept)}) of shape {self.picked.shape}"
            if not fits:
                _check_places(operand, kept, shown, array)
            self.map: AxisMap = map_axes(
                operand, kept if fits else None, self.picked.shape, f"input.{name}", shown,
                [axis.kept for axis in self.picked.axes],
            )  # fmt: skip
        except AxisError as error:
            raise InputError(str(error)) from None
        except SelectionError as error:
            raise InputError(f"input.select.{name}: {what} {error}") from None
        if operand.real and product.data.dtype.kind == "c":
            raise InputError(f"input.{name}: must be real, but {what} is complex")
        of_workload = source is not None and name in source.products()
        if operand.amplitudes and of_workload and product.data.dtype.kind != "c":
            raise InputError(
                f"input.{name}: must be complex amplitudes, but {what} is {product.name}, "
                f"{product.data.dtype}; take the one that it is made of"
            )
        kind = product.data.dtype if operand.real else np.result_type(product.data, np.complex64)
        units = source.units_of(name) if source is not None else None
        self.header = OperandHeader(
            self.map, kind.name, product.units if units is None else units,
            self.picked.numbers(shape, operand, self.map, names),
        )  # fmt: skip
        self.transformed = self.map.axes[-1] if operand.named and not coordinates else None
        self.renamed, self.dropped = self._placed(names)
        for axis, own in self.renamed.items() if not fits else ():
            units = product.coordinates[axis].units if axis in product.coordinates else ""
            check_place(f"input.{name}: {what}", axis, own, units)

    def _names_along(self, number: int) -> list[Coordinate]:
        """Return the names along an axis of the product, which the file or the study says.

        A covariance has the same antennas along its columns.
        """
        there = [(one.of(name), one) for name, one in self.product.coordinates.items()]
        named = [(axes, one) for axes, one in there if are_names(one.values)]
        axis = self.product.axes[number]
        same = [(axis,), *([("antenna",)] if axis == "column" else [])]
        return [one for axes, one in named if axes in same]

    def _placed(self, names: Sequence[str]) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the operand's name of each axis that it has, and the entry of each that it drops.

        ``names`` are those of the product's axes in the config.
        """
        axes = self.product.axes
        numbers = [number for number, axis in enumerate(self.picked.axes) if axis.kept]
        renamed = {
            axes[number]: axis
            for axis in self.map.axes
            if (place := self.map.place(axis)) is not None
            for number in [numbers[place]]
        }
        dropped = {
            axes[number]: axis.indices
            for number, axis in enumerate(self.picked.axes)
            if not axis.kept
        }
        # An axis that a number drops and the operand has all the same, of the one entry.
        for number, name in enumerate(names):
            own = operand_axis(name)
            if not self.picked.axes[number].kept and own in self.map.missing:
                renamed[axes[number]] = own
                del dropped[axes[number]]
        return renamed, dropped

    def coordinates(self) -> dict[str, Coordinate]:
        """Return the coordinates of the kept axes, cut as the data, with the operand's names.

        l of beams that have become rows m is ``m_l``; what the study gives keeps its name. Where a
        number drops an axis, the entry that it takes stays, with `SELECTED` before its name. It
        replaces one of that name which the product has (`above_selected`).
        """
        found: dict[str, Coordinate] = {}
        for name, one in self.product.coordinates.items():
            axes = one.of(name)
            if len(axes) == 1 and axes[0] in self.product.axes:
                taken_along = self.picked.axes[self.product.axes.index(axes[0])]
                one = of_one_half(one, taken_along)
            if name.startswith(SELECTED):
                found.setdefault(name, one)
                continue
            if len(axes) == 1 and axes[0] in self.dropped:
                values, own_name = one.values[self.dropped[axes[0]]], f"{SELECTED}{name}"
                long_name = f"{one.long_name or name} {TAKEN}"
                taken = replace(
                    one, values=values, long_name=long_name, axes=(f"{SELECTED}{axes[0]}",)
                )
                found[own_name] = above_selected(self.product.coordinates.get(own_name), taken)
                continue
            if not set(axes) <= set(self.renamed):
                continue
            values, step = one.values, one.step
            for number, axis in enumerate(axes):
                picked = self.picked.axes[self.product.axes.index(axis)]
                if values.size and is_blank(values):
                    shape = list(values.shape)
                    shape[number] = picked.length
                    values = blank(tuple(shape), values.dtype)
                else:
                    values = np.take(values, picked.indices, axis=number)
                step = picked.apart(step)
            own = tuple(self.renamed[axis] for axis in axes)
            if name in self.renamed:
                own_name, own = self.renamed[name], ()
                if own_name == self.transformed and values.dtype.kind == "U":
                    continue  # names tell no steps, as those of a file along such an axis
            else:
                # On an axis of another name, which two operands may have, so has the coordinate.
                own_name = name if own == axes or name in self.given else f"{own[0]}_{name}"
            found[own_name] = replace(one, values=values, axes=own, step=step)
        return found

    def stretched(self, array: Any) -> Stretched:
        """Return the operand as an array has it: a `ProductArray`, or one of a reader's.

        One stretch is kept, so that a small one is read once.
        """
        dtype = np.dtype(self.header.dtype)
        axis, entries = self._stretches()
        length, shape = self.map.shape[axis], self.map.shape
        place = self.map.place(self.map.axes[axis])
        kept = [number for number, one in enumerate(self.picked.axes) if one.kept]

        @lru_cache(maxsize=1)
        def read(start: int) -> Array:
            part = self.picked
            if place is not None:
                part = part.stretch(kept[place], start, min(start + entries, length))
            data = array.taken(part).transpose(self.map.order)
            data = data.reshape(*shape[:axis], -1, *shape[axis + 1 :])
            return np.ascontiguousarray(data, dtype)

        def stretches() -> Iterator[tuple[int, Array]]:
            for start in range(0, length, entries):
                yield start, read(start)

        return Stretched(shape, dtype, axis, entries, stretches)

    def _stretches(self) -> tuple[int, int]:
        """Return the axis, not the last, of small enough entries, and a power of two of them."""
        shape, item = self.map.shape, self.product.data.dtype.itemsize
        total = int(np.prod(shape, dtype=object)) * item
        axes: Sequence[int] = range(max(1, len(shape) - 1))
        entries = {axis: total // shape[axis] for axis in axes}
        fitting = [axis for axis in axes if entries[axis] <= STRETCH_BYTES]
        axis = fitting[0] if fitting else min(axes, key=lambda axis: entries[axis])
        most = max(1, min(shape[axis], STRETCH_BYTES // max(1, entries[axis])))
        exact = most.bit_length() - 1 if most < shape[axis] else (most - 1).bit_length()
        return axis, 1 << exact


def _check_places(operand: Operand, kept: Sequence[str], shown: str, array: str | None) -> None:
    """Raise AxisError where axes taken by their place would make one of the operand's another.

    Times would become antennas where an axis that the operand lacks stands behind them.
    ``array`` is what files of the input's format call covariances; None where they do not.
    """
    odd = next(name for name in kept if operand_axis(name) not in operand.axes)
    for name, place in zip(reversed(kept), reversed(operand.axes), strict=False):
        own = operand_axis(name)
        if own in operand.axes and own != place:
            hint = f"; those of the file's format are `{operand.name}: {array}`" if array else ""
            if odd == "pair":
                hint = "; `form: full` makes matrices of the pairs"
            if odd == "fine_frequency":
                hint = "; with frequencies along both, and by their names in select, both are one"
            raise AxisError(
                f"input.{operand.name}: {shown}; {odd!r} is none of {list(operand.axes)}, so the "
                f"axes would go by their place, and {name!r} become {place!r}: drop {odd!r} by an "
                "index in input.select, or name all axes in input.axes"
                f"{hint if 'column' in operand.axes or odd == 'fine_frequency' else ''}"
            )
