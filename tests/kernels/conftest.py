"""Fixtures of the kernels' tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from argand.device import Arch
from argand.runtime.plans import tuned_plans

from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.tuning_cases import card
from tests.kernels.runtime.launch.graph_cases import no_cached_call

__all__ = ["no_cached_call"]


@pytest.fixture(params=ARCHS, scope="module")
def arch(request: pytest.FixtureRequest) -> Arch:
    """Each architecture that this run compiles kernels for."""
    return ARCHS[request.param]


@pytest.fixture
def card_without_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An H200 that nothing runs on, and an empty cache."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    monkeypatch.setattr(tuned_plans, "gpu", lambda index: card())
