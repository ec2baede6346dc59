"""Tuned plans of softmaxes on a GPU: later calls take the plan that is kept, and are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import softmax, tune_softmax
from argand.device import Device
from argand.runtime.plans import tuned_plans
from argand.softmax import tuned
from argand.softmax.candidates import SoftmaxCandidate
from scipy import special

from tests.kernels.softmax.softmax_cases import half_ulps, numbers, stored

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table of this test alone; compiled kernels stay where they are."""
    monkeypatch.setattr(tuned_plans, "cache_folder", lambda: tmp_path)
    tuned.TABLE.changed()
    yield
    tuned.TABLE.changed()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans of softmaxes that are prepared from now on."""
    from argand.softmax.gpu import SoftmaxLaunch

    found: list[Any] = []
    prepare = SoftmaxLaunch.__init__

    def noted(self: Any, *given: Any) -> None:
        prepare(self, *given)
        found.append((self.form, self.plan))

    monkeypatch.setattr(SoftmaxLaunch, "__init__", noted)
    return found


@pytest.mark.parametrize(
    ("kind", "rows", "columns"), [("fp32", 300, 1000), ("fp16", 9, 12_289), ("bf16", 3, 300_000)]
)
def test_the_fastest_plan_is_kept_and_taken(
    cp: Any,
    rng: np.random.Generator,
    gpu: Device,
    planned: list[Any],
    kind: str,
    rows: int,
    columns: int,
) -> None:
    x = stored(4 * rng.standard_normal((rows, columns)).astype(np.float32), kind)
    given = {"format": "bf16" if kind == "bf16" else None, "output": kind}
    softmax(cp.asarray(x), **given)
    found = tune_softmax(rows, columns, input=kind, output=kind)
    times = [time for _, time in found]
    assert times == sorted(times)
    assert times[0] > 0
    planned.clear()
    result = numbers(softmax(cp.asarray(x), **given).get(), kind)  # planned again
    ((form, plan),) = planned
    assert plan == found[0][0].plan(form, gpu.require_arch(), columns)
    exact = special.softmax(numbers(x, kind), axis=-1)
    held = half_ulps(result, exact, kind)
    assert held.max() <= (4 if kind == "fp32" else 1.05)


def test_what_was_kept_is_taken_and_a_neighbour_that_it_does_not_hold_is_not(
    cp: Any, planned: list[Any]
) -> None:
    x = cp.random.default_rng(1).standard_normal((5, 1000), dtype=cp.float32)
    softmax(x)
    (form, _), *_ = planned
    candidate = SoftmaxCandidate(128, 1)
    tuned.TABLE.keep(cp.cuda.Device().id, {tuned.key(form, 5, 1000): candidate})
    planned.clear()
    softmax(x)
    softmax(x[:, :960].copy())
    softmax(cp.concatenate([x, x], axis=1))
    plans = [plan for _, plan in planned]
    assert [plan.row_threads for plan in plans[:2]] == [128, 128]
    assert plans[2].row_threads != 128
