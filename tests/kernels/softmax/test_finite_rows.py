"""Finite rows of softmax on the CPU: the bits of the steps for all, and forms that come again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from argand import PRECISIONS
from argand.softmax import api, cpu
from argand.softmax.finite_rows import prepared
from argand.softmax.formats import Operation
from argand.softmax.problem import SoftmaxProblem

VALUES: dict[str, Callable[[Any], Any]] = {
    "positive": lambda x: abs(x),
    "of both signs": lambda x: x,
    "negative": lambda x: -abs(x) - 1,
    "large": lambda x: 100 * x,
    "huge": lambda x: np.finfo(np.float32).max / 5 * x,
    "small": lambda x: 1e-30 * x,
    "zeros": lambda x: -0.0 * x,
    "one far above": lambda x: x + 40 * (abs(x) == abs(x).max(-1, keepdims=True)),
    "infinite": lambda x: np.where(abs(x) > 1.5, np.copysign(np.inf, x), x),
    "lost": lambda x: np.where(x > 1.5, np.nan, x),
    "nothing": lambda x: np.where(x[..., :1] > 0, -np.inf, x),
}


def in_place(run: Any, x: Any, expected: Any) -> list[Any]:
    """Compute in the place of a copy of x; nothing where the result has another shape."""
    if x.shape != expected.shape:
        return []
    own = np.array(x, order="C")
    assert run(own, own) is own
    return [own]


@pytest.mark.pairwise
@pytest.mark.parametrize("block", [cpu.BLOCK_VALUES, 128])
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("operation", get_args(Operation))
def test_bits_are_those_of_all_rows(
    operation: Operation, precision: str, values: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are the same by blocks of some rows, and in place."""
    monkeypatch.setattr(cpu, "BLOCK_VALUES", block)
    row = PRECISIONS[precision]
    rng = np.random.default_rng(1)
    few_rows = ((1,), (7,), (300,), (40, 1), (40, 5), (3, 4, 33), (9, 1200), (3, 2100))
    for shape in (*few_rows, (300, 7), (2, 50, 2)):
        wide = VALUES[values](rng.standard_normal((2, *shape))).astype(row.real_output)
        problem = SoftmaxProblem(shape, operation, row, precision, precision)
        run = prepared(problem)
        for x in (wide[1], np.asfortranarray(wide[1]), np.repeat(wide, 2, -1)[1, ..., ::2]):
            expected = cpu.softmax(problem, x, None)
            out = np.empty_like(expected)
            assert run(x, out) is out
            for found in (run(x, None), out, *in_place(run, x, expected)):
                assert found.shape == expected.shape
                np.testing.assert_array_equal(found, expected)
                np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("function", api.FUNCTIONS.values())
def test_a_form_that_came_before_is_not_checked_again(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(2).standard_normal((5, 6)).astype(np.float32)
    calls: list[dict[str, Any]] = [
        {}, {"precision": "tf32"}, {"scale": 2.0}, {"axis": 0}, {"out": function(x)},
    ]  # fmt: skip
    first = [function(x, **call).copy() for call in calls]
    monkeypatch.setattr(api, "_problem_of", None)  # a call that is checked fails
    for call, expected in zip(calls, first, strict=True):
        np.testing.assert_array_equal(function(x, **call), expected)
    for other in (x[:3], x.astype(np.float64), x.astype(np.float16)):
        with pytest.raises(TypeError):
            function(other)
