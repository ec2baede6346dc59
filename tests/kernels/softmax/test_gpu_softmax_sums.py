"""GPU sums of exponentials: rows that are streamed, and rows without a sum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, logsumexp
from argand.device import Device
from argand.rounding import round_operand
from scipy import special

from tests.kernels.softmax.softmax_cases import approximate_errors, numbers, stored

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("kind", "columns", "precision"),
    [
        ("fp32", 24_579, "fp32"), ("fp32", 24_700, "bf16"), ("fp32", 24_577, "3xtf32"),
        ("fp16", 33_001, "fp32"), ("bf16", 40_960, "fp32"), ("complex64", 12_301, "fp32"),
    ],
)  # fmt: skip
def test_logsumexp_of_many_long_rows(
    cp: Any, gpu: Device, rng: np.random.Generator, kind: str, columns: int, precision: str
) -> None:
    """Streamed rows, one of which has its largest values last and one in the middle."""
    rows = 7 * gpu.sm_count + 1
    some = 4 * rng.standard_normal((8, columns), dtype=np.float32)
    some[1] = np.sort(some[1])
    some[2, columns // 2] = 90
    some[3, :-1] = -np.inf
    given: dict[str, Any] = {"output": "fp32", "precision": precision}
    if kind == "complex64":
        x = np.sqrt(np.abs(some[[0, 1, 2, 4]])).astype(np.complex64)
        exact = special.logsumexp(np.abs(x.astype(np.complex128)) ** 2, axis=-1)
        given["power"] = True
    else:
        x = stored(some, kind)
        held = numbers(x, kind)
        if precision != "fp32":
            held = round_operand(x, PRECISIONS[precision]).astype(np.float64)
        exact = special.logsumexp(held, axis=-1)
        given["format"] = "bf16" if kind == "bf16" else None
    whole = cp.tile(cp.asarray(x), (-(-rows // len(x)), 1))[:rows]
    found = logsumexp(whole, **given).get()
    expected = np.tile(exact, -(-rows // len(x)))[:rows]
    _, allowed = approximate_errors(some)
    np.testing.assert_allclose(found, expected, rtol=4 * 2.0**-24, atol=allowed)


def test_logsumexp_of_rows_without_a_sum(cp: Any) -> None:
    x = np.zeros((4, 100), np.float32)
    x[0], x[1, 3], x[2, 7] = -np.inf, np.inf, np.nan
    for precision in ("fp32", "fp64"):
        found = logsumexp(cp.asarray(x), precision=precision).get()
        np.testing.assert_allclose(found, [-np.inf, np.inf, np.nan, np.log(100)], rtol=1e-6)
