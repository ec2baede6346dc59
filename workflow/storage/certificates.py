"""Certificates in product files: how an answer was computed and how far it was proved.

Each value is a scalar dataset and, for readers of attributes alone, an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py

from workflow.storage.datasets import members, open_written

CERTIFICATE_KEYS = (
    "workload", "implementation", "precision", "algorithm", "device", "rel_frobenius",
    "error_limit", "bound", "tolerance", "verdict", "verified", "reference", "kernel_digest",
    "versions", "timestamp",
)  # fmt: skip
"""Keys of every certificate, as in a Record; provenance (seed, source, checksum) is beside."""
CAVEATS = "caveats"
"""Key of a certificate: what to know of the data before the result is trusted, in words."""
DELIVERED = ("verified", "unproven")
"""Verdicts of what may be a product; an unproven one is asked for (`Case.allow_unproven`)."""


def read_certificate(path: Path) -> dict[str, Any]:
    """Return the certificate of a product file, nested as it was written. Raises DataError."""
    with open_written(path, "product") as file:
        return read_scalars(file["entry/certificate"])


def check_certificate(certificate: Mapping[str, Any]) -> None:
    """Raise ValueError where keys are missing or the result is wrong or suspect."""
    missing = [key for key in CERTIFICATE_KEYS if key not in certificate]
    if missing:
        raise ValueError(f"certificate must have {list(CERTIFICATE_KEYS)}, {missing} are missing")
    if certificate["verdict"] not in DELIVERED:
        raise ValueError(
            f"certificate.verdict must be one of {list(DELIVERED)}, got {certificate['verdict']!r}"
        )


def nexus_group(parent: h5py.Group, name: str, nexus_class: str) -> h5py.Group:
    """Return a new group of a class of NeXus."""
    group = parent.create_group(name)
    group.attrs["NX_class"] = nexus_class
    return group


def write_scalars(group: h5py.Group, values: Mapping[str, Any]) -> None:
    """Write values and, as groups, mappings of them; None is left out."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            write_scalars(nexus_group(group, key, "NXcollection"), value)
        elif value is not None:
            group[key] = value
            group.attrs[key] = value


def read_scalars(group: h5py.Group) -> dict[str, Any]:
    """Read what `write_scalars` wrote."""
    found: dict[str, Any] = {}
    for key, value in members(group).items():
        if isinstance(value, h5py.Group):
            found[key] = read_scalars(value)
        else:
            scalar = value[()]
            found[key] = scalar.decode() if isinstance(scalar, bytes) else scalar.item()
    return found
