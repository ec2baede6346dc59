"""Tests of kernels have few rows, at which a call would take cuFFT."""

from __future__ import annotations

import pytest
from argand.dft import few_rows


@pytest.fixture(autouse=True)
def _own_kernels_at_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", 0)
