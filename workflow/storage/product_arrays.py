"""The arrays of a product file: its data, axes and coordinates in an NXdata group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import h5py
import numpy as np

from workflow.data import SELECTED, Array, Coordinate, Product
from workflow.storage.certificates import read_scalars
from workflow.storage.datasets import read_dataset, read_values, write_values
from workflow.storage.gathered import read_virtual, sources_of

PRODUCT = "argand_product"
"""Attribute of the group of a product, with its name."""
BESIDE_AXES = "argand_axes"
"""Attribute with the axes of what stands beside a product, in the product's own names."""


def check_product(product: Product) -> None:
    """Raise ValueError where axes, data and coordinates do not fit together."""
    data, axes = product.data, product.axes
    if len(axes) != data.ndim or len(set(axes)) != len(axes):
        raise ValueError(
            f"product.axes must name each of the {data.ndim} axes of {product.name} once, "
            f"got {list(axes)}"
        )
    lengths = dict(zip(axes, data.shape, strict=True))
    for name, found in product.coordinates.items():
        shape = np.shape(found.values)
        expected = tuple(lengths.get(one, n) for one, n in zip(found.of(name), shape, strict=False))
        if len(found.of(name)) != len(shape) or shape != expected:
            raise ValueError(f"product.coordinates.{name} must have shape {expected}, got {shape}")
        if name in axes and found.of(name) != (name,):
            raise ValueError(f"product.coordinates.{name} must stand along {name}, an axis")
        if not found.axes and name not in axes and not name.startswith(SELECTED):
            raise ValueError(f"product.coordinates must be of {list(axes)}, got {[name]}")
    if product.name in {*axes, *product.coordinates}:
        raise ValueError(f"product.name must differ from its axes, got {product.name!r}")


def write_arrays(
    group: h5py.Group, product: Product, signal: Callable[[h5py.Group, str], h5py.Dataset]
) -> None:
    """Write axes and coordinates into an NXdata group, and the data by ``signal``."""
    lengths = dict(zip(product.axes, product.data.shape, strict=True))
    beside = {name: one for name, one in product.coordinates.items() if name not in lengths}
    for name, one in beside.items():  # where antennas are: axes that the data have no more
        lengths |= {a: n for a, n in zip(one.of(name), one.values.shape, strict=True)
                    if a not in lengths}  # fmt: skip
    scales = {axis: _write_axis(group, product, axis, n) for axis, n in lengths.items()}
    group.attrs["axes"] = list(product.axes)
    for index, axis in enumerate(product.axes):
        group.attrs[f"{axis}_indices"] = index
    group.attrs[PRODUCT] = group.attrs["signal"] = product.name
    group.attrs["argand_beside"] = list(beside)
    for name, one in beside.items():
        if name in scales:  # names of antennas, beside where they are
            group[name].attrs[BESIDE_AXES] = [name]
            continue
        dataset = write_values(group, name, one.values)
        _label(dataset, one.units, one.long_name)
        dataset.attrs[BESIDE_AXES] = list(one.of(name))
        _attach(dataset, [scales[axis] for axis in one.of(name)])
        where = [product.axes.index(axis) for axis in one.of(name) if axis in product.axes]
        if len(where) == len(one.of(name)):
            group.attrs[f"{name}_indices"] = where
    dataset = signal(group, product.name)
    _label(dataset, product.units, product.title)
    _attach(dataset, [scales[axis] for axis in product.axes])
    along = [name for name, one in beside.items() if set(one.of(name)) <= set(product.axes)]
    if along:
        dataset.attrs["coordinates"] = " ".join(along)


def _attach(dataset: h5py.Dataset, scales: Sequence[h5py.Dataset]) -> None:
    for dimension, scale in zip(dataset.dims, scales, strict=True):
        dimension.attach_scale(scale)


def _write_axis(group: h5py.Group, product: Product, name: str, length: int) -> h5py.Dataset:
    """Return the dimension scale of one axis: its coordinate, or its numbers from 0."""
    numbers = Coordinate(np.arange(length), "", f"{name} number")
    coordinate = product.coordinates.get(name, numbers)
    dataset = write_values(group, name, coordinate.values)
    _label(dataset, coordinate.units, coordinate.long_name)
    dataset.attrs["argand_numbered"] = name not in product.coordinates
    dataset.make_scale(name)
    return dataset


def _label(dataset: h5py.Dataset, units: str, long_name: str) -> None:
    """Set units and name, unless empty: an empty one means something else to some readers."""
    for key, value in (("units", units), ("long_name", long_name)):
        if value:
            dataset.attrs[key] = value


def read_whole(dataset: h5py.Dataset, part: Sequence[slice]) -> Array:
    """Return a product array's values: its own, or those of the files it was gathered from."""
    if not dataset.is_virtual:
        return read_dataset(dataset, part)
    shards = read_scalars(dataset.file["entry/certificate/shards"])
    axes = [_text(axis) for axis in dataset.parent.attrs["axes"]]
    return read_virtual(dataset, axes.index(shards["axis"]), sources_of(shards["each"]), part)


def read_arrays(
    entry: h5py.Group,
    values: Callable[[h5py.Dataset, Sequence[slice]], Array],
    most: int | None = None,
    given: Sequence[slice] | None = None,
) -> Product:
    """Read the product of an entry; its data by ``values``, of the part that is asked for.

    ``most`` and ``given`` are as ``most`` and ``part`` in `workflow.storage.products.read_product`.
    """
    group, title = entry["data"], _text(entry["title"][()])
    name = _text(group.attrs[PRODUCT])
    axes = tuple(_text(axis) for axis in group.attrs["axes"])
    dataset = group[name]
    part = [slice(length) for length in dataset.shape] if given is None else list(given)
    if most is not None and dataset.nbytes > most:
        number = next(index for index, length in enumerate(dataset.shape) if length > 1)
        length = dataset.shape[number]
        part[number] = slice(max(1, int(length * most / dataset.nbytes)))
        title += f" (first {part[number].stop} of {length}, {axes[number]})"
    coordinates = {
        axis: _read_coordinate(group[axis], where)
        for axis, where in zip(axes, part, strict=True)
        if not group[axis].attrs["argand_numbered"]
    }
    stretches = dict(zip(axes, part, strict=True))
    for beside in map(_text, group.attrs["argand_beside"]):
        coordinates[beside] = _read_beside(group[beside], stretches)
    units = _text(dataset.attrs.get("units", ""))
    product = Product(name, values(dataset, part), axes, coordinates, title, units)
    check_product(product)
    return product


def _read_coordinate(dataset: h5py.Dataset, where: slice) -> Coordinate:
    units, long_name = (_text(dataset.attrs.get(key, "")) for key in ("units", "long_name"))
    return Coordinate(read_values(dataset, [where]), units, long_name)


def _read_beside(dataset: h5py.Dataset, stretches: Mapping[str, slice]) -> Coordinate:
    """Return a coordinate that is not an axis: those of the stretches that it has are cut."""
    axes = tuple(_text(one) for one in dataset.attrs[BESIDE_AXES])
    part = [stretches.get(a, slice(n)) for a, n in zip(axes, dataset.shape, strict=True)]
    units, long_name = (_text(dataset.attrs.get(key, "")) for key in ("units", "long_name"))
    return Coordinate(read_values(dataset, part), units, long_name, axes)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
