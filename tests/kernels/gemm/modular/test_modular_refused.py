"""An exact product whose smallest pieces take more than is allowed is refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.without_device import without_device

SIDE = 4096


def test_no_launch_of_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """There would be thousands, which take the host some ten seconds."""
    names = ("launch", "kept_launches", "problem")
    modules = ("device", "runtime.calls.layout", "runtime.memory.workspace_limit")
    with without_device(*modules, *(f"gemm.modular.{name}" for name in names)) as found:
        _, device, layout, limits, launch, kept_launches, problem = found
        made: list[Any] = []
        monkeypatch.setattr(launch, "product_launch", lambda *given, **named: made.append(given))
        arch = device.arch_for(90)
        card = device.Device("cuda", "a card", 0, arch, 132)
        lines = layout.Layout(SIDE, SIDE, SIDE, 1, 0, item=8, aligned=32)
        product = problem.ModularProblem(
            "complex64", 7, 1, lines, lines, None, lines, False, False, 1, 0
        )
        with pytest.raises(limits.WorkspaceError, match="in the smallest pieces") as raised:
            kept_launches.launch_for(product, card, 16 << 10)
        assert raised.value.needed > raised.value.allowed == 16 << 10
        assert not made
