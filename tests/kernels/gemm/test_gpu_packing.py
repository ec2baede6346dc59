"""Operands in planes: tiles of few lines and of many; lines waited for, or looked at before."""

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

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma", "no_call_remembered")]
SHAPE = (131, 75, 1100)
"""Ragged in lines, whole in k that tiles of 16 lines have and not."""


def ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each way to find the scales, while it is in force."""
    for lines in (16, 64):
        for waits in (True, False):
            monkeypatch.setattr(
                sys.modules["argand.gemm.pack_launch"], "lines_of", lambda *_, lines=lines: lines
            )
            monkeypatch.setattr(
                sys.modules["argand.gemm.pack_launch"], "can_wait", lambda *_, waits=waits: waits
            )
            forget_calls()
            yield f"{lines} lines, {'waiting' if waits else 'looked at before'}"


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("shift", [0, 1], ids=["aligned", "unaligned"])
def test_every_way_has_the_same_bits(
    cp: Any,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    transposed: bool,
    shift: int,
) -> None:
    """Contiguous along k or along lines, read by one number or by two at once."""
    m, n, k = SHAPE
    a, b = normal(rng, m, k + shift), normal(rng, k + shift, n + shift)
    a *= np.float32(2.0) ** rng.integers(-8, 9, (m, 1)).astype(np.float32)
    left, right = cp.asarray(a)[:, shift:], cp.asarray(b)[shift:, shift:]
    if transposed:
        left, right = cp.asfortranarray(left), cp.asfortranarray(right)
    found = {
        way: gemm(left, right, precision=precision, kernels="wgmma") for way in ways(monkeypatch)
    }
    first = next(iter(found.values()))
    assert bool(cp.isfinite(first).all())
    for way, result in found.items():
        assert bool((result == first).all()), way
