"""Crowds of threads: calls that a seed draws, and faults that are found (a GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.crowd.__main__ import main
from benchmarks.crowd.calls import LAYOUTS, draw
from benchmarks.crowd.worker import Worker
from tests.covers import examples

SHORT = ["--seconds", "2", "--calls", "8", "--threads", "4", "--seed", "3"]


def test_a_seed_draws_calls_that_can_be_made() -> None:
    """Each returns the result that it is given, and finite numbers."""
    for number in range(examples(60)):
        call, again = draw(1, number), draw(1, number)
        assert call.name == again.name
        for x, y in zip(call.operands, again.operands, strict=True):
            np.testing.assert_array_equal(x, y)
        found = call.run(*(x.copy() for x in call.operands), out=None)
        assert np.isfinite(found).all(), call.name
        if call.layout:
            out = LAYOUTS[call.layout](np, found.shape, found.dtype)
            assert (out.shape, out.dtype) == (found.shape, found.dtype)
            assert call.run(*call.operands, out=out) is out, call.name


@pytest.mark.gpu
def test_a_crowd_without_faults(cp: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SHORT) == 0, capsys.readouterr().out


@pytest.mark.gpu
def test_a_wrong_byte_is_found(
    cp: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results of threads are spoiled, those that they are compared with are not."""
    made = Worker._made_from

    def wrong(*given: Any) -> Any:
        found = made(*given)
        found.fill(0)
        return found

    monkeypatch.setattr(Worker, "_made_from", wrong)
    assert main(SHORT) == 1
    assert "numbers differ" in capsys.readouterr().out
