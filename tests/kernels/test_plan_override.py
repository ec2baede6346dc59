"""Plan override by nested contexts."""

from __future__ import annotations

import pytest
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
