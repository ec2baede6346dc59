"""Few rows of lengths without small prime factors: convolutions over the whole card (a GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, dft
from argand.device import gpu
from argand.dft import few_rows
from argand.dft.butterfly import ButterflyPlan

from workflow.accuracy.transform_bounds import plan_bound

pytestmark = pytest.mark.gpu
FEW = few_rows.FEW_NUMBERS


@pytest.fixture
def as_called(_own_kernels_at_few_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows take the plans that calls take."""
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", FEW)


@pytest.mark.usefixtures("as_called")
@pytest.mark.parametrize(
    ("length", "share", "inverse"),
    [(67, 1, False), (111, 3, True), (302, 2, False), (509, 4, True), (1009, 2, False),
     (103, 12, False), (337, 8, True), (1367, 2, True), (2551, 1, False)],
)  # fmt: skip
def test_rows_that_a_multiprocessor_has_at_once(
    cp: Any, rng: np.random.Generator, length: int, share: int, inverse: bool
) -> None:
    """One block has a row less than the others; rows differ by powers of two."""
    from argand.dft.gpu import plan_of

    rows = share * gpu(0).sm_count - 1
    sizes = 2.0 ** rng.integers(-30, 30, (rows, 1))
    x = (sizes * (rng.normal(size=(rows, length)) + 1j * rng.normal(size=(rows, length)))).astype(
        "complex64"
    )
    out = cp.full(x.shape, np.nan, "complex64")
    given = cp.asarray(x)
    plan = plan_of(given, inverse=inverse, out=out).plan
    assert isinstance(plan, ButterflyPlan)
    assert plan.groups >= share
    found = dft(given, inverse=inverse, out=out).get().astype("complex128")
    exact = np.fft.ifft(x.astype("complex128")) if inverse else np.fft.fft(x.astype("complex128"))
    errors = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert errors.max() < plan_bound(plan, PRECISIONS["3xfp16"], length)
