"""Costs of passes over a state: a table's, and measured ones that are kept."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from argand import Device, measure_gate_costs, plan_circuit
from argand.device import cpu
from argand.gates import measure as gate_measuring
from argand.gates.costs import _CPU_TABLE, _DEFAULT, GateCosts, _alike, gate_costs
from argand.precision import PRECISIONS


def test_a_pass_over_qubit_0_has_a_cost_of_its_own() -> None:
    """A gate wider than the table costs twice its widest entry for each further qubit."""
    costs = GateCosts(1e9, ((1.0, 3.0), (2.0, 5.0)), 1e-6, measured=False)
    copy = 2 * 8 * 2**20 / 1e9
    for targets, copies in (((4,), 1), ((0,), 3), ((4, 7), 2), ((7, 0), 5), ((4, 0, 7, 2), 20)):
        assert costs.seconds(20, targets, 8) == pytest.approx(1e-6 + copies * copy)


def test_costs_are_measured_and_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    row = PRECISIONS["fp32"]
    assert not gate_costs(row, cpu(), 12).measured
    measured = measure_gate_costs("fp32", cpu(), qubits=12)
    assert gate_costs(row, cpu(), 12) == gate_costs(row, cpu(), 30) == measured
    assert measured.measured
    assert len(measured.widths) == 7
    assert not gate_costs(PRECISIONS["tf32"], cpu(), 12).measured
    measure_gate_costs("tf32", cpu(), qubits=10)
    small = measure_gate_costs("fp32", cpu(), qubits=8)
    assert gate_costs(row, cpu(), 12) == measured
    assert gate_costs(row, cpu(), 9) == small
    (path,) = tmp_path.glob("gates-*.json")
    plan = plan_circuit(9, [(np.eye(2)[::-1], (0,))], precision="fp32")
    assert plan.measured
    assert plan.predicted_seconds == small.of_form(9, plan.forms[0], 8)
    text = path.read_text()
    short = json.loads(text)
    short["choices"]["fp32 12"]["widths"].pop()
    nameless, nested = text.replace("fp32 12", "fp32"), "[" * 100_000
    missing = text.replace("call_seconds", "calls")
    for damaged in (text[:-9], "[]", missing, json.dumps(short), nameless, nested):
        path.write_text(damaged)
        _CPU_TABLE.forget()  # as in a new process
        with pytest.warns(RuntimeWarning, match=r"gates-.*json: .* is damaged .* circuits are"):
            assert not gate_costs(row, cpu(), 12).measured
    _CPU_TABLE.forget()
    path.write_text(text)
    with pytest.raises(ValueError, match="qubits must be at least 7, got 6"):
        measure_gate_costs("fp32", cpu(), qubits=6)
    with pytest.raises(ValueError, match="settle must not be negative, got -1"):
        measure_gate_costs("fp32", cpu(), qubits=8, settle=-1)


def test_a_precision_without_costs_has_those_of_the_nearest() -> None:
    for name in _DEFAULT:
        assert _alike(PRECISIONS[name]) == name
    one, two = PRECISIONS["bf16"], PRECISIONS["3xfp16"]
    split = replace(one, name="3xbf16", roundings=two.roundings, products=two.products)
    assert _alike(split) == "3xfp16"


def test_the_table_is_what_was_measured(root: Path) -> None:
    with (root / "docs" / "data" / "h200-gate-costs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["qubits"] == "26"]
    assert {row["precision"] for row in rows} == set(_DEFAULT) <= set(PRECISIONS)
    for row in rows:
        known = _DEFAULT[row["precision"]][int(row["width"]) - 1][row["inside"] == "True"]
        assert known == round(float(row["copies"]), 2)


@pytest.mark.parametrize(
    ("limit", "used", "qubits", "fits"),
    [(0, 0, 28, True), (0, 0, 29, False), (1 << 30, 0, 26, False), (3 << 30, 1 << 29, 26, True)],
)
def test_measuring_leaves_memory_to_others(
    monkeypatch: pytest.MonkeyPatch, limit: int, used: int, qubits: int, fits: bool
) -> None:
    """Four states of complex64 of the 8 GiB that are free, within the limit of CuPy's pool."""
    current = SimpleNamespace(mem_info=(8 << 30, 16 << 30))
    pool = SimpleNamespace(free_bytes=lambda: 0, get_limit=lambda: limit, used_bytes=lambda: used)
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(Device=lambda index: nullcontext(current)),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device = Device("cuda", "card")
    assert gate_measuring._fits(PRECISIONS["3xfp16"], device, qubits) == fits
