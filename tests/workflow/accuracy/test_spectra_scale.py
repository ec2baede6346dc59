"""Bounds of powers are relative: samples of another size have the same errors and bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import cpu

from tests.workflow.streamed_runs import workload_of

CASE: dict[str, Any] = {
    "kind": "dft", "power": True, "length": 32, "segments": 6, "batch": 2, "window": "hann",
}  # fmt: skip


@pytest.mark.parametrize("detrend", [None, "linear"])
@pytest.mark.parametrize("exponent", [-20, 20])
def test_a_power_of_two_changes_no_bound(exponent: int, detrend: str | None) -> None:
    one = workload_of(CASE | {"detrend": detrend}, "fp32")
    staged = one.stage()
    scaled = {**staged.operands, "samples": staged.operands["samples"] * 2.0**exponent}
    found = []
    for given in (staged, replace(staged, operands=scaled)):
        ours = one.argand(given, PRECISIONS["fp32"], cpu())
        result = ours.compute(ours.prepare(given.operands))
        accuracy = one.assess(
            one.as_computed(given, ours.plan_words), one.reference(given), result,
            PRECISIONS["fp32"], "cpu",
        )  # fmt: skip
        assert accuracy.verified, accuracy.reason
        found.append((accuracy.bound, accuracy.worst_bound, accuracy.error_limit))
    assert found[0] == pytest.approx(found[1], rel=1e-12)
