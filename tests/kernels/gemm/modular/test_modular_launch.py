"""Launches of exact products: which kernels wait for which, and pieces beyond what is allowed."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from argand.gemm.modular.launch_order import KernelLaunch, dependencies

from tests.kernels.without_device import without_device

KERNEL: Any = None


def launch(reads: str = "", writes: str = "") -> KernelLaunch:
    return KernelLaunch(KERNEL, {}, (), tuple(reads), tuple(writes))


def test_operands_are_encoded_side_by_side() -> None:
    """Encode A; norms and encode B; product; decode: then the same for another piece."""
    piece = [launch("", "a"), launch("n", "b"), launch("ab", "r"), launch("r", "")]
    found = dependencies([launch("", "n"), *piece, *piece])
    assert found == [[], [], [0], [1, 2], [3], [3], [3], [4, 5, 6], [7]]


@pytest.mark.parametrize("seed", range(20))
def test_launches_that_clash_are_ordered_and_others_are_not(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def drawn() -> str:
        return "".join(x for x in "abcd" if rng.random() < 0.3)

    launches = [launch(drawn(), drawn()) for _ in range(12)]
    found = dependencies(launches)
    ordered = np.zeros((12, 12), bool)
    for number, waits in enumerate(found):
        for other in waits:
            ordered[number, other] = True
            ordered[number] |= ordered[other]
    # Orders that follow from clashes, by chains of them.
    needed = np.zeros((12, 12), bool)
    for first, second in combinations(range(12), 2):
        x, y = launches[first], launches[second]
        clash = set(x.writes) & {*y.reads, *y.writes} or set(x.reads) & set(y.writes)
        needed[second, first] = bool(clash)
    for number in range(12):
        for other in np.flatnonzero(needed[number]):
            needed[number] |= needed[other]
    np.testing.assert_array_equal(ordered, needed)
    # None waits for what another that it waits for waits for.
    for waits in found:
        assert not any(ordered[x, y] for x in waits for y in waits)


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
