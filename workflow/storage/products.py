"""Product files: a workload's answer, laid out so that others' programs open it by themselves.

The layout is NeXus (``/entry/data`` is an NXdata with its axes) with HDF5 dimension scales, which
is also netCDF-4: silx, h5web, nexusformat, h5netcdf and xarray find the data and its axes without
being told. The arrays have a second name in the root group, where `xarray.open_dataset` looks.
Complex data is the compound of ``r`` and ``i`` that h5py writes. ``/entry/certificate`` says how
the answer was computed and how far it was proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from workflow.data import Array, Coordinate, Product
from workflow.storage.certificates import (
    check_certificate,
    nexus_group,
    read_scalars,
    write_scalars,
)
from workflow.storage.datasets import (
    DataError,
    create,
    members,
    open_written,
    read_dataset,
    read_values,
    without_values,
    write_dataset,
    write_values,
)
from workflow.storage.gathered import Source, read_virtual, sources_of, write_virtual
from workflow.storage.slabs import SlabWriter

_SAID = ("precision", "device", "rel_frobenius", "error_limit", "verdict", "timestamp")
"""Of the certificate, attributes of the file: what xarray shows beside the data."""


@dataclass(frozen=True)
class Slabs:
    """A product's data in stretches of an axis, for what is larger than memory.

    ``read`` gives, each time it is called, all of them in order: the first entry and the data, of
    ``step`` entries but the last; ``step`` is a power of two.
    """

    axis: str
    step: int
    read: Callable[[], Iterable[tuple[int, Array]]]


def write_product(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    slabs: Slabs | None = None,
    *,
    workload: str,
    kind: str,
) -> None:
    """Write a product file, atomically and with checksums.

    Args:
        path: where it goes.
        product: the answer; each axis has a coordinate of its length or is numbered. With ``slabs``
            only shape and type are taken of its data.
        slabs: its data, written as they come.
        certificate: at least `certificates.CERTIFICATE_KEYS`, and ``verified`` is true; scalars,
            strings, and mappings of them. None is left out of the file.
        workload, kind: whose answer it is.

    Raises:
        ValueError: axes that do not fit the data, or a certificate that is incomplete or says that
            the result did not verify.
    """
    _write(path, product, certificate, partial(_write_signal, product, slabs), workload, kind)


def write_gathered(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    sources: Sequence[Source],
    *,
    workload: str,
    kind: str,
) -> None:
    """Write a product file whose arrays are those of other product files; see `write_virtual`.

    Args:
        path: where it goes; the sources lie beside it or in folders there.
        product: the answer but for the values of its data, of which shape and type are taken.
        certificate: as for `write_product`; its ``shards`` has the ``axis`` that was split, and
            under ``each`` a mapping for each source with at least the fields of `Source`.
        sources: the files, in the order of their entries.
        workload, kind: whose answer it is.

    Raises ValueError as `write_product` does, and where the sources do not cover the axis.
    """
    axis = product.axes.index(certificate["shards"]["axis"])

    def virtual(group: h5py.Group, name: str) -> h5py.Dataset:
        data = product.data
        return write_virtual(group, name, data.dtype, data.shape, axis, sources)

    _write(path, product, certificate, virtual, workload, kind)


def _write(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    signal: Callable[[h5py.Group, str], h5py.Dataset],
    workload: str,
    kind: str,
) -> None:
    check_product(product)
    check_certificate(certificate)
    attributes = {"workload": workload, "kind": kind, "NX_class": "NXroot", "default": "entry"}
    with create(path, "product", attributes) as file:
        entry = nexus_group(file, "entry", "NXentry")
        entry.attrs["default"] = "data"
        entry["title"] = product.title
        _write_data(nexus_group(entry, "data", "NXdata"), product, signal)
        write_scalars(nexus_group(entry, "certificate", "NXcollection"), certificate)
        file.attrs["title"] = product.title
        for key in _SAID:
            if key in certificate:
                file.attrs[key] = certificate[key]
        for name, dataset in members(entry["data"]).items():
            file[name] = dataset


def read_product(
    path: Path, most: int | None = None, part: Sequence[slice] | None = None
) -> Product:
    """Read a product file, its checksums checked.

    With ``most`` no more than so many bytes, but at least one entry, of its first axis that has
    several; the title then says so. With ``part`` a range of each axis.

    Raises DataError that names the file where it is missing, damaged or not a product.
    """
    with open_written(path, "product") as file:
        try:
            return _read_data(file["entry"], _values, most, part)
        except (ValueError, TypeError, RuntimeError, UnicodeError) as error:
            # HDF5 reports some damage to a header by other errors than OSError and KeyError.
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: damaged ({error}); delete it and run again") from error


def read_outline(path: Path) -> Product:
    """A product without its values: they are all 0 and take no memory. Raises DataError."""
    with open_written(path, "product") as file:
        return _read_data(file["entry"], lambda dataset, part: without_values(dataset))


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
        if not found.axes and name not in axes:
            raise ValueError(f"product.coordinates must be of {list(axes)}, got {[name]}")
    if product.name in {*axes, *product.coordinates}:
        raise ValueError(f"product.name must differ from its axes, got {product.name!r}")


def _write_signal(
    product: Product, slabs: Slabs | None, group: h5py.Group, name: str
) -> h5py.Dataset:
    if slabs is None:
        return write_dataset(group, name, product.data)
    data, axis = product.data, product.axes.index(slabs.axis)
    with SlabWriter(group, name, data.shape, data.dtype, axis, slabs.step) as writer:
        for start, values in slabs.read():
            writer.write(start, values)
        writer.finish()
    return group[name]


def _write_data(
    group: h5py.Group, product: Product, signal: Callable[[h5py.Group, str], h5py.Dataset]
) -> None:
    lengths = dict(zip(product.axes, product.data.shape, strict=True))
    beside = {name: one for name, one in product.coordinates.items() if name not in lengths}
    for name, one in beside.items():  # where antennas are: axes that the data have no more
        lengths |= {a: n for a, n in zip(one.of(name), one.values.shape, strict=True)
                    if a not in lengths}  # fmt: skip
    scales = {axis: _write_axis(group, product, axis, n) for axis, n in lengths.items()}
    group.attrs["axes"] = list(product.axes)
    for index, axis in enumerate(product.axes):
        group.attrs[f"{axis}_indices"] = index
    group.attrs["argand_product"] = group.attrs["signal"] = product.name
    group.attrs["argand_beside"] = list(beside)
    for name, one in beside.items():
        dataset = write_values(group, name, one.values)
        _label(dataset, one.units, one.long_name)
        dataset.attrs["argand_axes"] = list(one.of(name))
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
    """The dimension scale of one axis: its coordinate, or its numbers from 0."""
    numbers = Coordinate(np.arange(length), "", f"{name} number")
    coordinate = product.coordinates.get(name, numbers)
    dataset = write_values(group, name, coordinate.values)
    _label(dataset, coordinate.units, coordinate.long_name)
    dataset.attrs["argand_numbered"] = name not in product.coordinates
    dataset.make_scale(name)
    return dataset


def _label(dataset: h5py.Dataset, units: str, long_name: str) -> None:
    """Units and name; an empty one is left out, because it means something else to some readers."""
    for key, value in (("units", units), ("long_name", long_name)):
        if value:
            dataset.attrs[key] = value


def _values(dataset: h5py.Dataset, part: Sequence[slice]) -> Array:
    """The values of a product's array: its own, or those of the files that it was gathered from."""
    if not dataset.is_virtual:
        return read_dataset(dataset, part)
    shards = read_scalars(dataset.file["entry/certificate/shards"])
    axes = [_text(axis) for axis in dataset.parent.attrs["axes"]]
    return read_virtual(dataset, axes.index(shards["axis"]), sources_of(shards["each"]), part)


def _read_data(
    entry: h5py.Group,
    values: Callable[[h5py.Dataset, Sequence[slice]], Array],
    most: int | None = None,
    given: Sequence[slice] | None = None,
) -> Product:
    group, title = entry["data"], _text(entry["title"][()])
    name = _text(group.attrs["argand_product"])
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
    """A coordinate that is no axis: those of the stretches that it has are cut."""
    axes = tuple(_text(one) for one in dataset.attrs["argand_axes"])
    part = [stretches.get(a, slice(n)) for a, n in zip(axes, dataset.shape, strict=True)]
    units, long_name = (_text(dataset.attrs.get(key, "")) for key in ("units", "long_name"))
    return Coordinate(read_values(dataset, part), units, long_name, axes)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
