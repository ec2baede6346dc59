"""What a result was computed with."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata

import argand

_PACKAGES = ("numpy", "scipy", "h5py", "cupy-cuda12x", "cupy-cuda13x", "torch", "triton")


@lru_cache(maxsize=1)
def versions() -> str:
    """The versions that matter to a number, as ``name version`` separated by semicolons."""
    found = [f"argand {argand.__version__}", f"python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return "; ".join(found)


def timestamp() -> str:
    """Now, in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
