"""Forcing a plan by nested contexts, and a dictionary that forgets."""

from __future__ import annotations

import pytest
from argand.runtime import call_cache as remembered
from argand.runtime.call_cache import Remembered
from argand.runtime.plan_override import Forced


def test_the_innermost_context_forces() -> None:
    forced: Forced[str | None] = Forced()
    assert not forced.active
    with forced.to("outer"):
        with forced.to(None):
            assert forced.active
            assert forced.value is None
        assert forced.value == "outer"
    assert not forced.active
    assert forced.value is None


def test_an_error_ends_the_context() -> None:
    forced: Forced[str] = Forced()
    with pytest.raises(RuntimeError), forced.to("one"):
        raise RuntimeError
    assert not forced.active


def test_all_is_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", 2)
    kept: Remembered[str, int] = Remembered()
    kept["a"], kept["b"] = 1, 2
    kept["b"] = 3
    assert kept == {"a": 1, "b": 3}
    kept["c"] = 4
    assert kept == {"c": 4}
