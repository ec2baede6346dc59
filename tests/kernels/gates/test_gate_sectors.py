"""Gates whose controls lie within a sector: which kernel writes it whole, and what a tile has."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.gates.heuristics import GateTraits, plan_gate
from argand.gates.layout import make_tile, tile_columns
from argand.gates.plan import GatePlan, check_gate_plan
from argand.gates.tile_tables import table_values
from argand.runtime.plan import PlanError

from tests.covers import examples
from tests.kernels.compiled import ARCHS

QUBITS = 20


def planned(qubits: int, width: int, low_controls: tuple[int, ...]) -> GatePlan:
    """The plan of a gate at 3xfp16 on a state, with these controls."""
    columns = 1 << (qubits - width - (1 in low_controls))
    traits = GateTraits(width, columns, low_controls=low_controls)
    plan = plan_gate(traits, PRECISIONS["3xfp16"], ARCHS["sm_90a"], 132)
    assert plan is not None
    return plan


def test_sectors_are_written_whole_where_l2_does_not_hold_them() -> None:
    for width, elsewhere, whole in ((3, "direct", "direct"), (4, "direct_mma", "mma")):
        found = [planned(qubits, width, (1,)) for qubits in (20, 21, 22, 26)]
        assert [plan.kind for plan in found] == [elsewhere, elsewhere, whole, whole]
        assert [plan.whole_sectors for plan in found] == [False, False, True, True]
    found = [planned(qubits, 5, (1,)) for qubits in (22, 23)]
    assert [plan.kind for plan in found] == ["direct_mma", "mma"]
    assert planned(23, 6, (0,)).kind == "wgmma"
    assert not planned(26, 4, ()).whole_sectors


def test_other_kernels_refuse_to() -> None:
    with pytest.raises(PlanError, match="whole_sectors is for direct, mma, got wgmma"):
        check_gate_plan(
            GatePlan("wgmma", 6, PRECISIONS["3xfp16"], False, 2, 2, whole_sectors=True),
            ARCHS["sm_90a"],
        )


def test_controls_within_a_sector_stay_in_tiles() -> None:
    """Bit 0 of the number of a chunk of results is qubit 1, which the kernel's stores rely on."""
    rng = np.random.default_rng(9)
    for _ in range(examples(20)):
        order = [int(qubit) for qubit in rng.permutation(QUBITS) if qubit != 1]
        width = int(rng.integers(4, 8))
        targets, controls = sorted(order[:width]), [1, *order[width : width + 2]]
        columns = tile_columns(QUBITS, targets, controls, 8, sectors=True)[: 11 - width]
        inside = {qubit for qubit in controls if qubit < 2}
        assert inside <= set(columns)
        assert not set(columns) & (set(controls) - inside)
        tile = make_tile("mma", columns, targets, 8, 256)
        values = table_values("mma", tile, QUBITS, controls, sectors=True)
        assert values["control_offset"] == sum(8 << c for c in controls if c not in inside)
        assert values["tiles"] == 2 ** (QUBITS - 11 - len(controls) + len(inside))
        assert (values["controls_qubit0"], values["controls_qubit1"]) == (0 in inside, 1)
        assert values["register_offset"][0] == 8 << 1
