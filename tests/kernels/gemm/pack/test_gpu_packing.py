"""Packing: panels of few rows and of many, in small tiles and large ones; absmax exchanged by
blocks, in clusters or through memory, or found before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import gemm

from tests.kernels.gemm.product_cases import normal
from tests.kernels.precisions import SCALED
from tests.kernels.runtime.launch.graph_cases import forget_calls

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_cached_call")]
SHAPE = (131, 75, 1100)
"""Ragged in rows and in k."""


def pack_plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each panel height and source of the absmax, while it is in force."""
    yield "as it is, in clusters"
    launches = sys.modules["argand.gemm.pack.launch"]
    for elements, rows in ((1024, 4), (2048, 8), (4096, 16)):
        tile = partial(replace, elements=elements, rows=rows, cluster=8)
        monkeypatch.setattr(launches, "laid_out", lambda plans, *_, tile=tile: [*map(tile, plans)])
        forget_calls()
        yield f"{rows} rows of tiles of {elements}, in clusters"
    monkeypatch.setattr(launches, "laid_out", lambda plans, *_: plans)
    for rows in (16, 64):
        for resident in (True, False):
            monkeypatch.setattr(launches, "panel_rows", lambda *_, rows=rows: rows)
            monkeypatch.setattr(launches, "panels_resident", lambda *_, resident=resident: resident)
            forget_calls()
            yield f"{rows} rows, {'exchanged' if resident else 'found before'}"


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


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_what_is_not_finite_has_no_part_in_a_scale(
    cp: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    transposed: bool,
) -> None:
    """Other rows and columns keep the bits that they have without it, in every packing."""
    m, n, k = SHAPE
    a, b = normal(rng, m, k), normal(rng, k, n)
    left, right = cp.asarray(a), cp.asarray(b)
    if transposed:
        left, right = cp.asfortranarray(left), cp.asfortranarray(right)
    whole = gemm(left, right, precision=precision, kernels="wgmma")
    left[7, 1001] = np.inf
    left[90, 3] = complex(0, np.nan)
    right[500, 70] = -np.inf
    rows, columns = np.delete(np.arange(m), [7, 90]), np.delete(np.arange(n), [70])
    for plan in pack_plans(monkeypatch):
        found = gemm(left, right, precision=precision, kernels="wgmma")
        assert bool((found[rows][:, columns] == whole[rows][:, columns]).all()), plan
        assert not bool(cp.isfinite(found[[7, 90]]).any()), plan
        assert not bool(cp.isfinite(found[:, 70]).any()), plan
