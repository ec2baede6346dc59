"""Cubins that were compiled before: of the user's cache, and of the package that ships some."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from argand.runtime.files.own_files import NotOwnError, NotOwnFolderError, read_own, write_own
from argand.runtime.files.plain_files import NotPlainError

SHIPPED_PACKAGE = "argand_cubins"
"""The package of cubins that were compiled elsewhere."""


class DamagedCubinError(RuntimeError):
    """A cubin of the installed package is not what it was."""


@dataclass(frozen=True)
class Resources:
    """Resources of one kernel, as ptxas reports them: registers per thread, the rest in bytes."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


Described = tuple[bytes, dict[str, Resources], tuple[str, ...]]
"""A cubin, the resources of its kernels and the warnings of ptxas."""


def read_cached(path: Path) -> Described | None:
    """Read what `write_cached` wrote; None where it is missing, or damaged and then removed."""
    try:
        data, cubin = read_own(path.with_suffix(".checked")), read_own(path)
    except FileNotFoundError:
        return None
    except NotOwnFolderError:
        raise
    except (NotOwnError, NotPlainError) as error:
        warnings.warn(f"{error}; not used, compiled again", RuntimeWarning, stacklevel=3)
        return None
    if not _is_whole(data, cubin):
        path.unlink(missing_ok=True)
        return None
    return _described(data, cubin)


def read_shipped(key: str) -> tuple[Path, Described] | None:
    """Return the shipped cubin of a digest, and its path; None where the package has none.

    Raises DamagedCubinError.
    """
    folder = shipped_folder()
    path = None if folder is None else folder / f"{key}.cubin"
    if path is None or not path.is_file():
        return None
    data, cubin = path.with_suffix(".checked").read_bytes(), path.read_bytes()
    if not _is_whole(data, cubin):
        raise DamagedCubinError(f"{path} is damaged: install argand-cubins again")
    found = _described(data, cubin)
    return None if found is None else (path, found)


@lru_cache(maxsize=1)
def shipped_folder() -> Path | None:
    """Return the folder of the installed package of cubins; None where there is none."""
    spec = find_spec(SHIPPED_PACKAGE)
    folders = None if spec is None else spec.submodule_search_locations
    return Path(folders[0]) if folders else None


def _is_whole(data: bytes, cubin: bytes) -> bool:
    """Return whether the description of a cubin, with the digest of both, belongs to it."""
    head, _, described = data.partition(b"\n")
    return head == _digest(described, cubin)


def _digest(described: bytes, cubin: bytes) -> bytes:
    return hashlib.sha256(described + cubin).hexdigest().encode()


def _described(data: bytes, cubin: bytes) -> Described | None:
    """Return a cubin with what its description says; None where an older version wrote that."""
    found = json.loads(data.partition(b"\n")[2])
    if found.keys() != {"kernels", "warnings"} or not found["kernels"]:
        return None
    kernels = {name: Resources(**values) for name, values in found["kernels"].items()}
    return cubin, kernels, tuple(found["warnings"])


def write_cached(
    path: Path, cubin: bytes, resources: dict[str, Resources], warnings: tuple[str, ...]
) -> None:
    """Keep a cubin and what is known of it. Raises NotOwnError for a folder of others."""
    kernels = {name: asdict(values) for name, values in resources.items()}
    described = json.dumps({"kernels": kernels, "warnings": warnings}).encode()
    write_own(path, cubin)
    write_own(path.with_suffix(".checked"), _digest(described, cubin) + b"\n" + described)
