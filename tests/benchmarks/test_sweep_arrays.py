"""Drawn arrays of every sweep are right, and candidate plans are measured beside the chosen one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device
from argand.device import arch_for
from argand.gates.direct import near_targets
from argand.gates.heuristics import GateTraits, plan_gate
from argand.gates.layout import tile_columns
from argand.gemm import tuned
from argand.gemm.heuristics import choose
from argand.gemm.question import GemmSizes, OperandTraits, Question

from benchmarks.harness.measuring import chosen_device
from benchmarks.peers import Candidate
from benchmarks.sweep import (
    banks,
    beams,
    correlations,
    dense,
    images,
    product_plans,
    spectra,
    systems,
)
from benchmarks.sweep import gates as sweep_gates
from benchmarks.sweep.case import Case
from benchmarks.sweep.draws import drawn
from benchmarks.sweep.softmaxes import SoftmaxCase

CASES: dict[str, tuple[Case, set[str]]] = {
    "bank": (banks.BankCase(12, 4, Fraction(4, 3), 3, "int8"), {"numpy"}),
    "real bank": (banks.BankCase(15, 5, Fraction(1), 1, "float32"), {"numpy"}),
    "beams": (beams.BeamCase(5, 16, 7, "power", "complex64", 300), {beams.PRODUCT, "numpy"}),
    "stokes": (beams.BeamCase(3, 16, 16, "stokes", "int8", 256), {beams.PRODUCT, "numpy"}),
    "pairs": (beams.BeamCase(9, 20, 1, "power", "fp16", 64), {beams.PRODUCT, "numpy"}),
    "exact beams": (
        beams.BeamCase(9, 20, 4, "power", "int8, weights too", 64),
        {beams.PRODUCT, "numpy"},
    ),
    "herk": (correlations.CorrelationCase(16, 64, "complex64"), {"argand full", "numpy"}),
    "integers": (correlations.CorrelationCase(20, 70, "int8"), {"argand full", "numpy"}),
    "triangle": (
        correlations.CorrelationCase(20, 70, "complex64", 3, "triangle", ["fp32", "fp64"]),
        {"argand full", "numpy"},
    ),
    "image": (images.ImageCase(2, 3, 6, 90), {"numpy"}),
    "spectra": (spectra.SpectrumCase(30, 3, "int8", 10, 4), {"scipy"}),
    "systems": (systems.SystemCase(20, 5, 3, "complex64"), {"numpy"}),
    "dense systems": (dense.DenseCase(20, 2, "complex64"), {"numpy", "scipy"}),
    "systems of fp64": (systems.SystemCase(20, 12, 1, "complex128"), {"numpy"}),
}


@pytest.mark.parametrize("name", CASES)
def test_every_result_is_checked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(banks._COMPONENTS, "cpu", 4000)
    for module in (beams, correlations, systems):
        monkeypatch.setitem(module._MAX_BYTES, "cpu", 1 << 15)
    case, peers = CASES[name]
    device = chosen_device("cpu")
    operands = case.operands(device, 1)
    assess = case.assessment(operands, device)
    ours, others = case.ours(device), case.peers(device)
    assert {one.name for one in others} >= peers
    for one in (*ours, *others):
        found = computed(one, operands)
        right: Any = assess(found, one)
        assert right.verified, (one.name, one.precision.name, right.reason)
        spoilt = found.reshape(-1, found.shape[-1])
        spoilt[0, 0] = 2 * spoilt[0, 0] + abs(found).max()
        wrong: Any = assess(spoilt.reshape(found.shape), one)
        assert not wrong.verified, (one.name, one.precision.name)
    assert case.bytes_moved > sum(x.nbytes for x in operands)
    assert case.flops > 0


def computed(candidate: Candidate, operands: tuple[Any, ...]) -> Any:
    """The result of a candidate, as it is checked."""
    return candidate.result(candidate.compute(*candidate.prepare(*operands)))


def test_results_of_halves_are_halves_or_fp32() -> None:
    device = Device("cpu", "")
    kinds = {case.kind: case for case in drawn("softmax", 200, 1)}
    assert {kind for kind in kinds if " to " in kind} == {
        f"{operation} {half} to fp32"
        for operation in ("softmax", "log_softmax")
        for half in ("fp16", "bf16")
    }
    for half in ("fp16", "bf16"):
        narrow, wide = (SoftmaxCase(40, 50, half, "softmax", written) for written in ("", "fp32"))
        assert wide.bytes_moved == 1.5 * narrow.bytes_moved
        operands = wide.operands(device, 1)
        for one in wide.ours(device):
            result = one.compute(*one.prepare(*operands))
            assert result.dtype == np.float32
            found = wide.assessment(operands, device)(result, one)
            assert found.verified, found.reason


def test_backward_error_is_that_of_the_definition(rng: np.random.Generator) -> None:
    a, x = rng.standard_normal((5, 5)) + 0j, rng.standard_normal((5, 2)) + 0j
    b = a @ x
    b[3, 1] += 1
    scale = abs(a).sum(axis=1).max() * abs(x[:, 1]).max() + abs(b[:, 1]).max()
    assert dense.backward_error(a, x, b) == pytest.approx(1 / scale, rel=1e-12)


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


def test_plans_of_triangles_are_square_and_taken_in_trials(monkeypatch: pytest.MonkeyPatch) -> None:
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
