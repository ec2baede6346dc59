"""Tables of measured choices: which way of solving a product was the fastest on a device.

`argand.tune` fills them, or ``python -m argand.tuning 4096x4096x4096``. A table is a JSON file
beside the cubins, one a device, driver and version of the kernels; it is written whole under a
temporary name and renamed. Sizes are looked up in steps of a quarter of an octave, so that a
measurement serves its neighbourhood.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from argand.atomic_files import atomic_path
from argand.device import Arch, gpu
from argand.gemm_choice import GemmChoice, GemmSizes, OperandTraits, candidates
from argand.nvrtc import cache_folder, kernel_digest
from argand.precision import PRECISIONS, Precision
from argand.wgmma_plan import WgmmaPlan

_STEPS = 4
"""Of an octave, within which sizes share an entry."""

Question = tuple[Precision, GemmSizes, OperandTraits, OperandTraits]
"""What a choice is made for: precision, sizes, and what A and B are like."""


def key(precision: Precision, sizes: GemmSizes, a: OperandTraits, b: OperandTraits) -> str:
    """The entry that a product belongs to."""
    rounded = [
        round(_STEPS * math.log2(max(1, size))) for size in (sizes.batch, sizes.m, sizes.n, sizes.k)
    ]
    flags = [int(flag) for traits in (a, b) for flag in asdict(traits).values()]
    return json.dumps([precision.name, *rounded, int(sizes.half_output), *flags])


_changes = 0


def generation() -> int:
    """How often tables have changed in this process: what was chosen before may be chosen anew."""
    return _changes


def _changed() -> None:
    global _changes
    _changes += 1


def measured_on(device: int) -> dict[str, str]:
    """What a measurement holds for, by name: the card, its driver, the digest of the kernels."""
    found = gpu(device)
    return {"device": found.name, "driver": found.driver, "kernels": kernel_digest("gemm")}


def table_path(device: int) -> Path:
    """Where a device's table lies; another card, driver or version of the kernels has another."""
    identity = json.dumps(measured_on(device))
    return cache_folder() / f"plans-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


@dataclass
class Trial:
    """A choice that every product is to be solved with, and for what the last one asked."""

    choice: GemmChoice | None
    question: Question | None = None


_trials: list[Trial] = []


@contextmanager
def trial(choice: GemmChoice | None) -> Iterator[Trial]:
    """A context in which each `lookup` finds this choice (None: nothing) and notes its question.

    Products then take the way that they would with the choice in the table, at the same cost.
    """
    _trials.append(Trial(choice))
    _changed()
    try:
        yield _trials[-1]
    finally:
        _trials.pop()
        _changed()


def lookup(
    precision: Precision, sizes: GemmSizes, a: OperandTraits, b: OperandTraits, device: int
) -> GemmChoice | None:
    """The measured choice for a product, None where none was measured."""
    if _trials:
        _trials[-1].question = (precision, sizes, a, b)
        return _trials[-1].choice
    if min(sizes.batch, sizes.m, sizes.n, sizes.k) == 0:
        return None  # nothing to measure; it would share the entry of size 1
    table = _table(table_path(device), device)
    return table.get(key(precision, sizes, a, b)) if table else None


@lru_cache(maxsize=16)
def _table(path: Path, device: int) -> dict[str, GemmChoice]:
    """A table, read once; warns of one that is damaged, which is only lost time."""
    try:
        return _read(path, device)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        warnings.warn(
            f"{path}: the table of measured choices is damaged ({type(error).__name__}: {error}); "
            "products are planned by estimates until `argand.tune` writes it anew",
            RuntimeWarning,
            stacklevel=2,
        )
        return {}


def _read(path: Path, device: int) -> dict[str, GemmChoice]:
    found = json.loads(path.read_text(encoding="utf-8"))
    choices = found.pop("choices")
    if found != measured_on(device):
        raise ValueError(f"measured on {found}, this is {measured_on(device)}")
    arch = gpu(device).require_arch()
    return {name: _entry(name, row, arch) for name, row in choices.items()}


def _entry(name: str, row: dict[str, Any], arch: Arch) -> GemmChoice:
    """An entry's choice. Raises ValueError where it is none of the product's candidates."""
    precision, *numbers = json.loads(name)
    half_output, flags = numbers[4], [bool(flag) for flag in numbers[5:]]
    each = len(fields(OperandTraits))
    plan = None if row["plan"] is None else WgmmaPlan(**row["plan"])
    choice = GemmChoice(plan, row["swapped"], row["parts"])
    a, b = OperandTraits(*flags[:each]), OperandTraits(*flags[each:])
    if choice not in _ways(precision, arch, bool(half_output), a, b):
        raise ValueError(f"{row} is no way to solve {name}")
    return choice


@lru_cache(maxsize=64)
def _ways(
    precision: str, arch: Arch, half_output: bool, a: OperandTraits, b: OperandTraits
) -> frozenset[GemmChoice]:
    # One tile of a long k has every number of parts that a product can have.
    longest = GemmSizes(1, 1, 1, 2**30, half_output)
    return frozenset(candidates(PRECISIONS[precision], arch, longest, a, b))


def keep(device: int, measured: dict[str, GemmChoice]) -> None:
    """Add entries to a device's table and use them from now on.

    Of two processes that do so at once, the entries of the first may be lost. Raises OSError where
    the table cannot be written.
    """
    path = table_path(device)
    _table.cache_clear()  # another process may have added to it
    table = {**_table(path, device), **measured}
    choices = {name: asdict(choice) for name, choice in table.items()}
    with atomic_path(path) as temporary:
        text = json.dumps({**measured_on(device), "choices": choices}, indent=1)
        temporary.write_text(text, encoding="utf-8")
    _table.cache_clear()
    _changed()


if __name__ == "__main__":
    from argand.tune import main

    sys.exit(main())
