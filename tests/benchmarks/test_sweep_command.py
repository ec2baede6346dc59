"""The command of a sweep: rows of a run that ends early, and plans where there is no GPU."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from argand import Device

from benchmarks.sweep import __main__ as command
from benchmarks.sweep.compiling import with_plans
from benchmarks.sweep.draws import SWEEPS, drawn
from benchmarks.sweep.recorded import TITLES


def test_a_run_that_ends_early_keeps_the_rows_of_cases_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cases = tmp_path / "rows.csv", drawn("small", 3, 8)

    def ended(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cases[2], "operands", ended)
    monkeypatch.setattr(command, "drawn", lambda *_: cases)
    with pytest.raises(KeyboardInterrupt):
        command.main(["small", "--seed", "8", "--device", "cpu", "--csv", str(path)])
    with path.open() as file:
        assert {row["shape"] for row in csv.DictReader(file)} == {case.shape for case in cases[:2]}


def test_every_sweep_has_a_title() -> None:
    assert tuple(TITLES) == SWEEPS


@pytest.mark.parametrize(
    "given", [["--plans", "1"], ["--only-plans"], ["--cases", "0"], ["--seed", "-1"]]
)
def test_what_no_sweep_of_a_cpu_can_have(given: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit):
        command.main(["small", "--seed", "8", "--device", "cpu", *given])
    assert given[0] in capsys.readouterr().err.splitlines()[-1]


def test_no_case_spends_its_turn_on_exact_products() -> None:
    ours = [case.ours(Device("cpu", "")) for case in drawn("gemm", 40, 1)]
    places = [with_plans(number, some, 1) for number, some in enumerate(ours)]
    names = [
        some[at].precision.name for some, at in zip(ours, places, strict=True) if at is not None
    ]
    assert len(names) == 40
    assert set(names) == {"tf32", "3xtf32", "3xfp16", "fp16", "bf16"}
    assert with_plans(1, ours[0], 2) is None
    assert with_plans(0, ours[0], 0) is None
    exact = [one for one in ours[0] if one.precision.moduli]
    assert with_plans(0, exact, 1) is None
