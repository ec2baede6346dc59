"""Packing: panels of few rows and of many; absmax exchanged by blocks, in clusters or through
memory, or scanned before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import gemm

from tests.kernels.gemm.product_cases import normal
from tests.kernels.precisions import SCALED
from tests.kernels.runtime.graph_cases import forget_calls

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]
SHAPE = (131, 75, 1100)
"""Ragged in rows and in k."""


def pack_plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each panel height and source of the absmax, while it is in force."""
    yield "as it is, in clusters"
    launches = sys.modules["argand.gemm.pack_launch"]
    monkeypatch.setattr(launches, "in_clusters", lambda plans, *_: plans)
    for rows in (16, 64):
        for resident in (True, False):
            monkeypatch.setattr(launches, "panel_rows", lambda *_, rows=rows: rows)
            monkeypatch.setattr(launches, "panels_resident", lambda *_, resident=resident: resident)
            forget_calls()
            yield f"{rows} rows, {'exchanged' if resident else 'scanned before'}"


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("shift", [0, 1], ids=["aligned", "unaligned"])
def test_every_packing_has_the_same_bits(
    cp: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    transposed: bool,
    shift: int,
) -> None:
    """Contiguous along k or along rows, read by one number or by two at once."""
    m, n, k = SHAPE
    a, b = normal(rng, m, k + shift), normal(rng, k + shift, n + shift)
    a *= np.float32(2.0) ** rng.integers(-8, 9, (m, 1)).astype(np.float32)
    left, right = cp.asarray(a)[:, shift:], cp.asarray(b)[shift:, shift:]
    if transposed:
        left, right = cp.asfortranarray(left), cp.asfortranarray(right)
    found = {
        plan: gemm(left, right, precision=precision, kernels="wgmma")
        for plan in pack_plans(monkeypatch)
    }
    first = next(iter(found.values()))
    assert bool(cp.isfinite(first).all())
    for plan, result in found.items():
        assert bool((result == first).all()), plan
