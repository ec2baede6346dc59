"""Versions of the packages and of the driver that computed a result."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata

import argand

_PACKAGES = ("numpy", "scipy", "h5py", "cupy-cuda12x", "cupy-cuda13x", "torch", "triton")


@lru_cache(maxsize=1)
def versions() -> str:
    """Return the versions that matter to a number, as ``name version`` separated by semicolons."""
    found = [f"argand {argand.__version__}", f"python {platform.python_version()}"]
    found += versions_of(_PACKAGES)
    found += [f"driver {driver}" for driver in _driver()]
    return "; ".join(found)


def versions_of(packages: Sequence[str]) -> list[str]:
    """Return ``name version`` of each package that is installed."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found


def _driver() -> list[str]:
    """Return the version of NVIDIA's driver, where NVML is installed and a driver answers."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        return [str(pynvml.nvmlSystemGetDriverVersion())]
    except pynvml.NVMLError:
        return []


def timestamp() -> str:
    """Return now, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
