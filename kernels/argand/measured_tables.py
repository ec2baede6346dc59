"""Tables of what was measured on a device: JSON files beside the cubins.

One a device, driver and version of the kernels; written whole under a temporary name and renamed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argand.atomic_files import atomic_path
from argand.device import Device
from argand.nvrtc import cache_folder, kernel_digest


def measured_on(device: Device, operation: str) -> dict[str, str]:
    """What a measurement holds for, by name: the device, its driver, the digest of the kernels."""
    return {
        "device": device.name, "driver": device.driver, "kernels": kernel_digest(operation),
    }  # fmt: skip


def table_path(name: str, on: Mapping[str, str]) -> Path:
    """Where a table lies; another device, driver or version of the kernels has another."""
    return (
        cache_folder() / f"{name}-{hashlib.sha256(json.dumps(on).encode()).hexdigest()[:16]}.json"
    )


def read_table(path: Path, on: Mapping[str, str]) -> dict[str, Any]:
    """A table's entries.

    Raises FileNotFoundError where there is none, another OSError, ValueError, TypeError or KeyError
    where it is damaged or holds for something else.
    """
    table = json.loads(path.read_text(encoding="utf-8"))
    found = {name: table.pop(name) for name in on}
    if found != on:
        raise ValueError(f"measured on {found}, this is {on}")
    return dict(table)


def write_table(path: Path, on: Mapping[str, str], entries: Mapping[str, Any]) -> None:
    """Write a table whole. Raises OSError."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps({**on, **entries}, indent=1), encoding="utf-8")
