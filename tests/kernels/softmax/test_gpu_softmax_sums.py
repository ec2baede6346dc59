"""GPU sums of exponentials: streamed rows, rows without a sum, approximate exponentials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, log_softmax, logsumexp, softmax
from argand.device import Device
from argand.rounding import round_operand
from scipy import special

from tests.kernels.softmax.softmax_cases import (
    approximate_errors,
    assert_logs,
    assert_logsumexp,
    numbers,
    stored,
)
from workflow.accuracy.references import softmax_reference
from workflow.accuracy.softmax_accuracy import assess_softmax

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


ROUNDED = tuple(
    name for name, row in PRECISIONS.items() if row.terms == 1 and not row.exact_operands
)
NARROW = (1, 3, 17, 40, 66, 89, 113, 128, 166, 171, 255, 502)
WIDE = (727, 2807, 25_640, 69_363, 300_001)


def rows_of(columns: int) -> int:
    """Rows that end within a block of any plan, and are not multiples of the rows of a block."""
    return 67 if columns < 1000 else 5


@pytest.mark.parametrize("columns", NARROW + WIDE)
@pytest.mark.parametrize("precision", ROUNDED)
def test_rounded_values_are_within_their_bound(
    cp: Any, rng: np.random.Generator, precision: str, columns: int
) -> None:
    rows = rows_of(columns)
    for scale in (1, 4, 30):
        x = (scale * rng.standard_normal((rows, columns))).astype(np.float32)
        x[1, 1::2] = -np.inf
        x[2] = 7e5
        x[2, -1] = 7.1e5
        whole = cp.full((rows + 3, columns), 17, cp.float32)
        assert softmax(cp.asarray(x), precision=precision, out=whole[:rows]) is not None
        assert bool((whole[rows:] == 17).all())
        found = whole[:rows].get()
        row = PRECISIONS[precision]
        # Whatever its exponent a value keeps its bits here, as at the precision without scales.
        held = row.without_scales if row.scaled else row
        assert held is not None
        accuracy = assess_softmax(softmax_reference(x), found, held, backend="cuda")
        assert accuracy.verdict != "wrong", accuracy.reason
        assert found.max() <= 1


@pytest.mark.parametrize("columns", [3, 40, 97, 171, 1134, 69_363])
@pytest.mark.parametrize("precision", ROUNDED)
@pytest.mark.parametrize("operation", [softmax, log_softmax, logsumexp])
def test_every_nan_makes_its_row_nan(cp: Any, precision: str, columns: int, operation: Any) -> None:
    """NaN whose low bits a rounding carries over the exponent too, of both signs."""
    patterns = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFFC00000, 0x7FFFF000], np.uint32)
    for place in (0, columns // 2, columns - 1):
        x = np.zeros((7, columns), np.float32)
        x[1:6, place] = patterns.view(np.float32)
        found = operation(cp.asarray(x), precision=precision).get()
        assert np.isnan(found[1:6]).all()
        assert np.isfinite(found[[0, 6]]).all()


@pytest.mark.parametrize("columns", NARROW + WIDE)
@pytest.mark.parametrize("shift", [0, 1000, -3e6])
def test_logarithms_of_fp32_are_within_their_bound(
    cp: Any, rng: np.random.Generator, columns: int, shift: float
) -> None:
    rows = rows_of(columns)
    x = (4 * rng.standard_normal((rows, columns)) + shift).astype(np.float32)
    x[1] = shift  # n equal terms
    x[2, 0] = shift + 64  # a term that is nearly the whole sum
    whole = cp.full((rows + 3, columns), 17, cp.float32)
    log_softmax(cp.asarray(x), out=whole[:rows])
    assert bool((whole[rows:] == 17).all())
    assert_logs(whole[:rows].get(), x.astype(np.float64), "fp32")
    assert_logsumexp(logsumexp(cp.asarray(x)).get(), x.astype(np.float64), "fp32")


@pytest.mark.parametrize("columns", [33, 97, 171, 300])
@pytest.mark.parametrize("rows", [1, 3, 67, 129])
def test_rows_that_end_within_a_block_in_place(
    cp: Any, rng: np.random.Generator, rows: int, columns: int
) -> None:
    """Threads beyond the last row read it, and must write nothing."""
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    for operation in (softmax, log_softmax):
        for precision in ("fp32", "fp16"):
            expected = operation(cp.asarray(x), precision=precision).get()
            whole = cp.full((rows + 9, columns), 17, cp.float32)
            view = whole[:rows]
            view[...] = cp.asarray(x)
            assert operation(view, precision=precision, out=view) is view
            np.testing.assert_array_equal(view.get(), expected)
            assert bool((whole[rows:] == 17).all())
