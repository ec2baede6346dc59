"""A fault of memory or arithmetic in exact products on the CPU: the last bit of a residue."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from argand.gemm.modular import cpu


def flip_residue(
    monkeypatch: pytest.MonkeyPatch, row: int, column: int, product: int | None = None
) -> None:
    """Flip it in each real product of residues, or only in the ``product``-th from 0."""
    real, calls = cpu._real_product, itertools.count()

    def flipped(*arguments: Any) -> Any:
        found = real(*arguments)
        if product in (None, next(calls)):
            found[row, column] ^= 1
        return found

    monkeypatch.setattr(cpu, "_real_product", flipped)
