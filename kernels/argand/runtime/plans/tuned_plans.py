"""Tables of tuned plans: the candidate that was the fastest on a device.

A table is a JSON file beside the cubins, one a device, driver and version of the kernels; it is
written whole under a temporary name and renamed. Sizes are looked up in buckets of a quarter of an
octave, so that a measurement serves its neighbourhood.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from argand.device import Device, gpu
from argand.runtime.compile.compiler import cache_folder
from argand.runtime.compile.kernel_digest import kernel_digest
from argand.runtime.files.own_files import read_own, write_own
from argand.runtime.memory.workspace_limit import allowed_workspace, follow_limit

C = TypeVar("C")

_DAMAGED = (TypeError, KeyError, AttributeError, IndexError, RecursionError)
"""Errors of damaged files and entries, besides ValueError."""
_BUCKETS = 4
"""Buckets of an octave; sizes within one share an entry."""


def size_bucket(size: int) -> int:
    """Return the bucket that a size belongs to."""
    return round(_BUCKETS * math.log2(max(1, size)))


class TunedPlans(Generic[C]):
    """Tuned plans (dataclasses) by the name of their entry, for the devices of this machine.

    ``entry(name, row, device)`` makes a plan of the file's row; it raises ValueError, or one of
    `_DAMAGED`, for a damaged row. ``without`` says what happens without a table.
    Devices are CUDA's indices; ``device`` describes one, `gpu` where it is None.
    """

    def __init__(
        self, kernels: str, prefix: str, entry: Callable[[str, dict[str, Any], Device], C],
        without: str, device: Callable[[int], Device] | None = None,
    ) -> None:  # fmt: skip
        self._device = device
        self._kernels, self._prefix, self._entry, self._without = kernels, prefix, entry, without
        self._read: dict[tuple[Path, Device], dict[str, C]] = {}
        self._changes = 0
        self.generation: Any = 0
        """Counts changes of tuned plans in this process, with the workspace limit where there is
        one: plans of another generation are made again."""
        self.changed_limit()
        follow_limit(self)

    def measured_on(self, device: int) -> dict[str, str]:
        """Return the card, its driver and the kernels' digest: a measurement holds for these."""
        found = (self._device or gpu)(device)
        kernels = kernel_digest(self._kernels)
        return {"device": found.name, "driver": found.driver, "kernels": kernels}

    def path(self, device: int) -> Path:
        """Return the path of a device's table; another card, driver or version has another."""
        identity = json.dumps(self.measured_on(device))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return cache_folder() / f"{self._prefix}-{digest}.json"

    def find(self, name: str, device: int) -> C | None:
        """Return the tuned plan of an entry, None where none was measured."""
        table = self.all(device)
        return table.get(name) if table else None

    def keep(self, device: int, measured: dict[str, C]) -> None:
        """Add entries to a device's table and use them from now on.

        Where two processes write at once, the entries of the first may be lost. Raises OSError
        where the table cannot be written.
        """
        self.forget()  # another process may have added to it
        table = {**self.all(device), **measured}
        choices = {name: asdict(choice) for name, choice in table.items()}  # type: ignore[call-overload]
        text = json.dumps({**self.measured_on(device), "choices": choices}, indent=1)
        write_own(self.path(device), text.encode())
        self.forget()
        self.changed()

    def adopt(self, device: int, tuned: dict[str, Any]) -> None:
        """Use one entry of another table in this process: its name, its choice, and what it is of.

        Raises ValueError for one of another card, driver or version, and for one that is damaged.
        """
        given = dict(tuned)
        try:
            name, row = str(given.pop("name")), given.pop("choice")
            if given != self.measured_on(device):
                raise ValueError(f"measured on {given}, this is {self.measured_on(device)}")
            choice = self._entry(name, row, (self._device or gpu)(device))
        except _DAMAGED as error:
            raise ValueError(f"a damaged tuned plan ({type(error).__name__}: {error})") from error
        table = self.all(device)
        if table.get(name) != choice:
            table[name] = choice
            self.changed()

    def forget(self) -> None:
        """Drop what was read, so that files are read again."""
        self._read.clear()

    def changed(self) -> None:
        """Count a change of the tuned plans."""
        self._changes += 1
        self.changed_limit()

    def changed_limit(self) -> None:
        """Take the workspace limit of the process into the generation."""
        allowed = allowed_workspace()
        self.generation = self._changes if allowed is None else (self._changes, allowed)

    def read(self, device: int) -> dict[str, C]:
        """Return the tuned plans in a device's file.

        Raises what ``entry`` raises, OSError, and ValueError where they belong to another device.
        """
        found = json.loads(read_own(self.path(device)))
        choices = found.pop("choices")
        if found != self.measured_on(device):
            raise ValueError(f"measured on {found}, this is {self.measured_on(device)}")
        card = (self._device or gpu)(device)
        return {name: self._entry(name, row, card) for name, row in choices.items()}

    def all(self, device: int) -> dict[str, C]:
        """Return a device's tuned plans, read once.

        Warns of a table that is damaged or that another user may have written; without it calls
        are slower, not wrong.
        """
        here = cache_folder(), (self._device or gpu)(device)
        found = self._read.get(here)
        if found is None:
            # Without a table there is no need of its name, which digests all sources.
            tables = any(here[0].glob(f"{self._prefix}-*.json"))
            found = self._read_or_warned(self.path(device), device) if tables else {}
            self._read[here] = found
        return found

    def _read_or_warned(self, path: Path, device: int) -> dict[str, C]:
        try:
            return self.read(device)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, *_DAMAGED) as error:
            warnings.warn(
                f"{path}: the table of measured choices is damaged or not one's own "
                f"({type(error).__name__}: {error}); {self._without} writes it again",
                RuntimeWarning,
                stacklevel=2,
            )
            return {}
