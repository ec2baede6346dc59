"""Candidate plans that a sweep measures beside the chosen one."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest
from argand import PRECISIONS, Device
from argand.device import arch_for
from argand.gates.direct import near_targets
from argand.gates.heuristics import GateTraits, plan_gate
from argand.gates.layout import tile_columns
from argand.gemm import tuned
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question

from benchmarks.peers import Candidate
from benchmarks.sweep import gates as sweep_gates
from benchmarks.sweep import product_plans
from benchmarks.sweep.draws import drawn


def test_plans_near_the_choice_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Device("cuda", "", arch=arch_for(90), cores=132)
    monkeypatch.setattr(product_plans, "gpu", lambda _: card)
    rows, columns = OperandTraits(), OperandTraits(k_major=False)
    for sizes in (GemmSizes(1, 120, 110, 300), GemmSizes(1, 4096, 4096, 64)):
        question = Question(PRECISIONS["3xfp16"], sizes, rows, columns)
        found = product_plans.near(question, 0)
        assert choose(question, arch_for(90), 132).wgmma in {x.wgmma for x in found}
        assert len({x.name for x in found}) == len(found) > 10
        assert (found[0].family == "mma.sync") == (sizes.m == 120)


def test_plans_of_triangles_are_square_and_taken_in_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = Device("cuda", "", arch=arch_for(90), cores=132)
    monkeypatch.setattr(product_plans, "gpu", lambda _: card)
    sizes = GemmSizes(500, 120, 120, 300, triangle=True)
    question = Question(PRECISIONS["tf32"], sizes, OperandTraits(), OperandTraits())
    found = product_plans.near(question, 0)
    assert {x.family for x in found} == {"mma.sync", "wgmma"}
    assert all(x.mma.block_m == x.mma.block_n for x in found if x.mma is not None)
    assert tuned.lookup(question, 0) is None
    with tuned.trial(found[1]) as asked:
        assert tuned.lookup(question, 0) == found[1]
    assert asked.question == question


def test_the_plan_of_a_gate_is_among_those_that_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = Device("cuda", "", arch=arch_for(90), cores=132)
    monkeypatch.setattr(sweep_gates, "gpu", lambda _: card)
    on_card = SimpleNamespace(device=SimpleNamespace(id=0))
    kinds = set()
    for case, name in product(drawn("gates", 60, 20261127), ("3xfp16", "tf32", "fp32")):
        assert isinstance(case, sweep_gates.GateCase)
        row, targets = PRECISIONS[name], sorted(case.gate.targets)
        one = Candidate("argand", row, "", lambda: (), lambda: None)
        columns = 1 << len(tile_columns(case.qubits, targets, case.gate.controls, 8))
        near = len(near_targets(targets))
        traits = GateTraits(len(targets), columns, targets[0] == 0, near=near)
        chosen = plan_gate(traits, row, arch_for(90), 132)
        assert chosen is not None
        if found := case.plans(one, (on_card,)):
            assert chosen.kind in {plan.kind for plan in found}
            kinds.add(chosen.kind)
    assert kinds == {"direct", "direct_mma", "mma", "wgmma"}  # of fma there is no other
