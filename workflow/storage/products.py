"""Product files: a workload's answer, laid out so that others' programs open it by themselves.

The layout is NeXus (``/entry/data`` is an NXdata with its axes) with HDF5 dimension scales, which
is also netCDF-4: silx, h5web, nexusformat, h5netcdf and xarray find the data and its axes by
themselves. The arrays have a second name in the root group, where `xarray.open_dataset` looks.
Complex data is the compound of ``r`` and ``i`` that h5py writes. ``/entry/certificate`` says how
the answer was computed and how far it was proved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py

from workflow.data import Product
from workflow.drawn import Stretched
from workflow.storage.certificates import check_certificate, nexus_group, write_scalars
from workflow.storage.datasets import (
    DataError,
    create,
    members,
    open_written,
    without_values,
    write_dataset,
)
from workflow.storage.drawn import write_drawn
from workflow.storage.gathered import SourceFile, write_virtual
from workflow.storage.product_arrays import check_product, read_arrays, read_whole, write_arrays

_SAID = ("precision", "device", "rel_frobenius", "error_limit", "verdict", "timestamp")
"""Certificate keys that are attributes of the file: what xarray shows beside the data."""


def write_product(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    stretched: Stretched | None = None,
    *,
    workload: str,
    kind: str,
) -> None:
    """Write a product file, atomically and with checksums.

    Args:
        path: where it goes.
        product: the answer; each axis has a coordinate of its length or is numbered. With
            ``stretched`` only shape and type are taken of its data.
        stretched: its data, for what is larger than memory: written as they come.
        certificate: at least `certificates.CERTIFICATE_KEYS`, and ``verified`` is true; scalars,
            strings, and mappings of them. None is left out of the file.
        workload, kind: whose answer it is.

    Raises:
        ValueError: axes that do not fit the data, or a certificate that is incomplete or says that
            the result did not verify.
    """
    _write(path, product, certificate, partial(_write_signal, product, stretched), workload, kind)


def write_gathered(
    path: Path,
    product: Product,
    certificate: Mapping[str, Any],
    sources: Sequence[SourceFile],
    *,
    workload: str,
    kind: str,
) -> None:
    """Write a product file whose arrays are those of other product files; see `write_virtual`.

    Args:
        path: where it goes; the sources lie beside it or in folders there.
        product: the answer without the values of its data; only their shape and type are taken.
        certificate: as for `write_product`; its ``shards`` has the ``axis`` that was split, and
            under ``each`` a mapping for each source with at least the fields of `SourceFile`.
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
        write_arrays(nexus_group(entry, "data", "NXdata"), product, signal)
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

    Where ``most`` is given, at most so many bytes are read, but at least one entry, along the first
    axis that has several; the title then says so. With ``part`` a range of each axis.

    Raises DataError that names the file where it is missing, damaged or not a product.
    """
    with open_written(path, "product") as file:
        try:
            return read_arrays(file["entry"], read_whole, most, part)
        except (ValueError, TypeError, RuntimeError, UnicodeError) as error:
            # HDF5 reports some damage to a header by other errors than OSError and KeyError.
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: damaged ({error}); delete it and run again") from error


def read_outline(path: Path) -> Product:
    """Return a product without its values: they are all 0 and take no memory. Raises DataError."""
    with open_written(path, "product") as file:
        return read_arrays(file["entry"], lambda dataset, part: without_values(dataset))


def _write_signal(
    product: Product, stretched: Stretched | None, group: h5py.Group, name: str
) -> h5py.Dataset:
    if stretched is None:
        return write_dataset(group, name, product.data)
    return write_drawn(group, name, stretched)
