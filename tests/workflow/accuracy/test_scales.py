"""Samples of another size: their errors are seen at any, and bounds of powers are relative."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu

from tests.workflow.streamed_runs import workload_of
from workflow.accuracy.lines import unit_of

CASES: dict[str, tuple[dict[str, Any], tuple[str, ...], int]] = {
    "dft": ({"length": 32, "batch": 3}, ("samples",), 600),
    "channelise": ({"channels": 16, "taps": 4, "samples": 128}, ("samples",), 600),
    "gemm": ({"m": 5, "n": 6, "k": 7}, ("a",), 600),
    "mimo": (
        {"receivers": 4, "transmitters": 3, "subcarriers": 2, "symbols": 5, "equaliser": "zf"},
        ("channel", "received"),
        300,
    ),
    "adaptive": ({"antennas": 6, "beams": 3, "channels": 2, "extent": 0.1}, ("covariances",), 600),
    "adaptive weights": (
        {"antennas": 6, "beams": 3, "channels": 2, "extent": 0.1},
        ("weights",),
        400,
    ),
}
"""Parameters of a kind, the operands whose scale is changed, and by which power of two."""
POWERS: dict[str, Any] = {
    "kind": "dft", "power": True, "length": 32, "segments": 6, "batch": 2, "window": "hann",
}  # fmt: skip


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("case", CASES)
def test_an_error_is_seen_at_any_scale(case: str, sign: int) -> None:
    parameters, scaled, exponent = CASES[case]
    kind = case.split()[0]
    precision = PRECISIONS["fp64"]
    one = workload_of({"kind": kind, **parameters}, "fp64")
    staged = one.stage()
    scale = 2.0 ** (sign * exponent)
    operands = dict(staged.operands)
    for name in scaled:
        operands[name] = operands[name].astype(complex) * scale
    staged = replace(staged, operands=operands)
    ours = one.argand(staged, precision, cpu())
    result = np.array(ours.compute(ours.prepare(staged.operands)), order="C")

    def assessed() -> Any:
        return one.assess(
            one.as_computed(staged, ours.plan_words), one.reference(staged), result, precision,
            "cpu",
        )  # fmt: skip

    found = assessed()
    assert found.verified, found.reason
    assert found.error_limit < 1e-12
    result.reshape(-1)[np.abs(result).argmax()] *= 1.001
    assert not assessed().verified


@pytest.mark.parametrize(
    ("given", "scaled"),
    [
        (
            {"kind": "channelise", "channels": 16, "taps": 4, "samples": 128, "real": True},
            "samples",
        ),
        ({"kind": "channelise", "channels": 16, "taps": 4, "samples": 128}, "samples"),
        ({"kind": "solve", "n": 8, "rhs": 2}, "b"),
    ],
)
def test_results_below_the_smallest_normal_number_are_assessed(
    given: dict[str, Any], scaled: str
) -> None:
    """The reciprocal of such a number is infinite. Nothing is proved of them, but all is measured:
    half of the result has half an error, but for what rounding to multiples of 2^-1074 adds.
    """
    one = workload_of(given, "fp64")
    staged = one.stage()
    operands = dict(staged.operands)
    operands[scaled] = operands[scaled] * np.float64(2.0**-1068)
    staged = replace(staged, operands=operands)
    ours = one.argand(staged, PRECISIONS["fp64"], cpu())
    result = np.array(ours.compute(ours.prepare(staged.operands)), order="C")
    assert 0 < np.abs(result).max() < 2.0**-1024

    def assessed(result: Any) -> Any:
        return one.assess(
            one.as_computed(staged, ours.plan_words), one.reference(staged), result,
            PRECISIONS["fp64"], "cpu",
        )  # fmt: skip

    found = assessed(result)
    assert (found.verdict, found.reason[:12]) == ("unproven", "not provable")
    assert found.rel_frobenius < 0.02
    assert found.measures
    assert all(np.isfinite(value) for value in found.measures.values())
    assert 0.48 < assessed(result / 2).rel_frobenius < 0.52


@pytest.mark.parametrize("exponent", [-1074, -1030, -1021, 0, 1023])
def test_complex_numbers_divided_by_their_unit_are_finite(exponent: int) -> None:
    x = np.ldexp(1.0, exponent) * np.array([[1.0, 1j, 0.0]])
    unit = unit_of(x, -1)
    assert unit == max(2.0**exponent, 2.0**-1022)
    assert (np.abs(x / unit) == np.abs(x) / unit).all()


@pytest.mark.parametrize("detrend", [None, "linear"])
@pytest.mark.parametrize("exponent", [-20, 20])
def test_a_power_of_two_changes_no_bound_of_powers(exponent: int, detrend: str | None) -> None:
    one = workload_of(POWERS | {"detrend": detrend}, "fp32")
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
