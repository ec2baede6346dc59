"""Sectors that GPU gates write whole, where a control excludes a part of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, apply_gate
from argand.device import gpu
from argand.gates.heuristics import candidate_plans, with_whole_sectors
from argand.gates.plan import WHOLE_SECTORS

from tests.kernels.gates.gate_cases import random_state, random_unitary
from tests.kernels.gates.test_gpu_gates import QUBITS, check

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("controls", [(1,), (0, 1), (9, 1, 13)])
def test_sectors_are_written_whole(
    cp: Any, rng: np.random.Generator, precision: str, width: int, controls: tuple[int, ...]
) -> None:
    """As where L2 does not hold a state, and whatever stands in amplitudes that do not change."""
    from argand.gates.gpu import PLAN_OVERRIDE

    device, row = gpu(0), PRECISIONS[precision]
    free = [qubit for qubit in range(QUBITS) if qubit not in (2, *controls)]
    targets = [int(target) for target in rng.permutation(free)[:width]]
    plan = next(
        plan for plan in candidate_plans(
            row, device.require_arch(), width=width, targets_qubit0=0 in targets, near=0
        ) if plan.kind in WHOLE_SECTORS
    )  # fmt: skip
    matrix, state = random_unitary(rng, width), random_state(rng, QUBITS)
    with PLAN_OVERRIDE.use(with_whole_sectors(plan)):
        check(cp, state, matrix, targets, controls, precision)
        state[0] = np.nan
        given = cp.asarray(state.astype(np.complex64))
        apply_gate(given, matrix, targets, controls=controls, precision=precision)
    assert np.flatnonzero(np.isnan(given.get())).tolist() == [0]
