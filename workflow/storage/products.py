"""Product files: a workload's answer, laid out so that others' programs open it by themselves.

The layout is NeXus (``/entry/data`` is an NXdata with its axes) with HDF5 dimension scales, which
is also netCDF-4: silx, h5web, nexusformat, h5netcdf and xarray find the data and its axes without
being told. Complex data stays the compound of ``r`` and ``i`` that h5py writes; beside it stands
its magnitude, real and therefore the default signal, because not every plotting program takes
complex numbers. ``/entry/certificate`` says how the answer was computed and how far it was proved.
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
    open_written,
    read_dataset,
    without_values,
    write_dataset,
)
from workflow.storage.gathered import Source, read_virtual, sources_of, write_virtual
from workflow.storage.slabs import SlabWriter


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
        dtype = product.data.dtype if name == product.name else product.data.real.dtype
        return write_virtual(group, name, dtype, product.data.shape, axis, sources)

    _write(path, product, certificate, virtual, workload, kind)


def _write(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    signal: Callable[[h5py.Group, str], h5py.Dataset],
    workload: str,
    kind: str,
) -> None:
    _check(product)
    check_certificate(certificate)
    attributes = {"workload": workload, "kind": kind, "NX_class": "NXroot", "default": "entry"}
    with create(path, "product", attributes) as file:
        entry = nexus_group(file, "entry", "NXentry")
        entry.attrs["default"] = "data"
        entry["title"] = product.title
        _write_data(nexus_group(entry, "data", "NXdata"), product, signal)
        write_scalars(nexus_group(entry, "certificate", "NXcollection"), certificate)


def read_product(
    path: Path, most: int | None = None, stretch: tuple[str, int, int] | None = None
) -> Product:
    """Read a product file, its checksums checked.

    With ``most`` no more than so many bytes, but at least one entry, of its first axis that has
    several; the title then says so. With ``stretch`` the entries of an axis from one to another.

    Raises DataError that names the file where it is missing, damaged or not a product.
    """
    with open_written(path, "product") as file:
        try:
            return _read_data(file["entry"], _values, most, stretch)
        except (ValueError, TypeError, RuntimeError, UnicodeError) as error:
            # HDF5 reports some damage to a header by other errors than OSError and KeyError.
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: damaged ({error}); delete it and run again") from error


def read_outline(path: Path) -> Product:
    """A product without its values: they are all 0 and take no memory. Raises DataError."""
    with open_written(path, "product") as file:
        return _read_data(file["entry"], lambda dataset, part: without_values(dataset))


def _check(product: Product) -> None:
    data, axes = product.data, product.axes
    if len(axes) != data.ndim or len(set(axes)) != len(axes):
        raise ValueError(
            f"product.axes must name each of the {data.ndim} axes of {product.name} once, "
            f"got {list(axes)}"
        )
    for axis, length in zip(axes, data.shape, strict=True):
        found = product.coordinates.get(axis)
        if found is not None and np.shape(found.values) != (length,):
            raise ValueError(
                f"product.coordinates.{axis} must have shape ({length},), "
                f"got {np.shape(found.values)}"
            )
    unknown = set(product.coordinates) - set(axes)
    if unknown:
        raise ValueError(f"product.coordinates must be of {list(axes)}, got {sorted(unknown)}")
    if product.name in axes:
        raise ValueError(f"product.name must differ from its axes, got {product.name!r}")


def _write_signal(
    product: Product, slabs: Slabs | None, group: h5py.Group, name: str
) -> h5py.Dataset:
    def values(data: Array) -> Array:
        return data if name == product.name else np.abs(data)

    if slabs is None:
        return write_dataset(group, name, values(product.data))
    dtype, axis = values(product.data[:0]).dtype, product.axes.index(slabs.axis)
    with SlabWriter(group, name, product.data.shape, dtype, axis, slabs.step) as writer:
        for start, data in slabs.read():
            writer.write(start, values(data))
        writer.finish()
    return group[name]


def _write_data(
    group: h5py.Group, product: Product, signal: Callable[[h5py.Group, str], h5py.Dataset]
) -> None:
    scales = [_write_axis(group, product, index) for index in range(product.data.ndim)]
    group.attrs["axes"] = list(product.axes)
    for index, axis in enumerate(product.axes):
        group.attrs[f"{axis}_indices"] = index
    group.attrs["argand_product"] = product.name
    signals = [product.name]
    if product.data.dtype.kind == "c":
        signals.append(f"{product.name}_magnitude")
    for name in signals:
        dataset = signal(group, name)
        magnitude = "" if name == product.name else "magnitude of "
        _label(dataset, product.units, magnitude + product.title)
        for dimension, scale in zip(dataset.dims, scales, strict=True):
            dimension.attach_scale(scale)
        # The last one is real: what a plotting program shows first.
        group.attrs["signal"] = name


def _write_axis(group: h5py.Group, product: Product, index: int) -> h5py.Dataset:
    """The dimension scale of one axis: its coordinate, or its numbers from 0."""
    name = product.axes[index]
    numbers = Coordinate(np.arange(product.data.shape[index]), "", f"{name} number")
    coordinate = product.coordinates.get(name, numbers)
    values = np.asarray(coordinate.values)
    if values.dtype.kind in "OSUT":
        # Text as variable-length UTF-8, which HDF5 cannot checksum.
        dataset = group.create_dataset(name, data=_strings(values), dtype=h5py.string_dtype())
    else:
        dataset = write_dataset(group, name, values)
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
    stretch: tuple[str, int, int] | None = None,
) -> Product:
    group, title = entry["data"], _text(entry["title"][()])
    name = _text(group.attrs["argand_product"])
    axes = tuple(_text(axis) for axis in group.attrs["axes"])
    dataset = group[name]
    part = [slice(length) for length in dataset.shape]
    if most is not None and dataset.nbytes > most:
        number = next(index for index, length in enumerate(dataset.shape) if length > 1)
        length = dataset.shape[number]
        part[number] = slice(max(1, int(length * most / dataset.nbytes)))
        title += f" (first {part[number].stop} of {length}, {axes[number]})"
    if stretch is not None:
        axis, start, stop = stretch
        number = axes.index(axis)
        part[number] = slice(start, min(stop, dataset.shape[number]))
    coordinates = {
        axis: _read_coordinate(group[axis], where)
        for axis, where in zip(axes, part, strict=True)
        if not group[axis].attrs["argand_numbered"]
    }
    units = _text(dataset.attrs.get("units", ""))
    product = Product(name, values(dataset, part), axes, coordinates, title, units)
    _check(product)
    return product


def _read_coordinate(dataset: h5py.Dataset, where: slice) -> Coordinate:
    text = h5py.check_string_dtype(dataset.dtype) is not None
    values = np.array(dataset.asstr()[where], dtype=str) if text else read_dataset(dataset, [where])
    units, long_name = (_text(dataset.attrs.get(key, "")) for key in ("units", "long_name"))
    return Coordinate(values, units, long_name)


def _strings(values: Array) -> Array:
    """Text of any NumPy type as Python strings, which h5py writes as UTF-8."""
    return np.array([_text(value) for value in values.tolist()], dtype=object)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
