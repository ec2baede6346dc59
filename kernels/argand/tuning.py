"""Tables of measured choices: which way of solving a product was the fastest on a device.

A table is a JSON file beside the cubins, one a device and version of the kernels; it is written
whole under a temporary name and renamed. Sizes are looked up in steps of a quarter of an octave, so
that a measurement serves its neighbourhood.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from argand.device import gpu
from argand.gemm_choice import GemmChoice, GemmSizes, OperandTraits
from argand.nvrtc import cache_folder, kernel_digest
from argand.precision import Precision
from argand.wgmma_plan import WgmmaPlan

_STEPS = 4
"""Of an octave, within which sizes share an entry."""


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


def table_path(device: int) -> Path:
    """Where a device's table lies; another card or other kernels have another."""
    name = hashlib.sha256(gpu(device).name.encode()).hexdigest()[:12]
    return cache_folder() / f"plans-{name}-{kernel_digest('gemm')}.json"


def lookup(
    precision: Precision, sizes: GemmSizes, a: OperandTraits, b: OperandTraits, device: int
) -> GemmChoice | None:
    """The measured choice for a product, None where none was measured."""
    table = _table(device)
    return table.get(key(precision, sizes, a, b)) if table else None


@lru_cache(maxsize=16)
def _table(device: int) -> dict[str, GemmChoice]:
    try:
        rows = json.loads(table_path(device).read_text(encoding="utf-8"))
        return {name: _choice(row) for name, row in rows.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        # A damaged table is only lost time: without it the estimates decide.
        return {}


def _choice(row: dict[str, Any]) -> GemmChoice:
    plan = None if row["plan"] is None else WgmmaPlan(**row["plan"])
    return GemmChoice(plan, bool(row["swapped"]), int(row["parts"]))


def keep(device: int, measured: dict[str, GemmChoice]) -> None:
    """Add entries to a device's table and use them from now on."""
    path = table_path(device)
    table = {**_table(device), **measured}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({name: asdict(choice) for name, choice in table.items()}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)
    _table.cache_clear()
    global _changes
    _changes += 1
