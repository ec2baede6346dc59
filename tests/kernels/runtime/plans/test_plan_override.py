"""Plan overrides by nested contexts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from argand.runtime.plans.plan_override import PlanOverride


def test_the_innermost_context_holds() -> None:
    override: PlanOverride[str | None] = PlanOverride()
    assert not override.active
    with override.use("outer"):
        with override.use(None):
            assert override.active
            assert override.value is None
        assert override.value == "outer"
    assert not override.active
    assert override.value is None


def test_an_error_ends_the_context() -> None:
    override: PlanOverride[str] = PlanOverride()
    with pytest.raises(RuntimeError), override.use("one"):
        raise RuntimeError
    assert not override.active


def test_a_context_is_of_its_thread() -> None:
    override: PlanOverride[str] = PlanOverride()
    with ThreadPoolExecutor(1) as others, override.use("mine"):
        assert others.submit(lambda: (override.active, override.value)).result() == (False, None)
