"""Programs of benchmarks on the CPU: what they call, write and print, and a wrong result."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import herk
from argand.softmax.problem import SOFTMAX_PRECISIONS

from benchmarks.__main__ import main, programs
from benchmarks.cpu_calls import __main__ as cpu_calls
from benchmarks.cpu_calls import kinds
from benchmarks.first_call import CALLS, FirstCall, prepared
from benchmarks.pipeline import exceedances
from tests.covers import examples
from tools.docs.attack_tables import exceedances_table
from workflow.workloads import KINDS


def test_every_program_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    found = programs()
    assert {"benchmarks.beside", "benchmarks.sweep", "benchmarks.gates.costs"} <= found.keys()
    assert [name for name, says in found.items() if not says.endswith((".", "`"))] == []
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) == len(found)


SMALL = {
    "gemm": (8, 8, 32), "softmax": (4, 8), "dft": (2, 16), "gate": (9, 5), "solve": (8, 1),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_every_first_call_is_one_that_the_functions_take(call: FirstCall) -> None:
    """On the CPU, with few elements: operations, precisions and types fit together."""
    found = prepared(FirstCall(call.operation, call.precision, SMALL[call.operation]), np)()
    array = found if isinstance(found, np.ndarray) or found is None else found[0]
    assert array is None or np.isfinite(array).all()


def test_names_tell_first_calls_apart() -> None:
    assert len({call.name for call in CALLS}) == len(CALLS)


GIVEN = ["--cases", "2", "--seed", "3", "--seconds", "0.0001"]


def test_calls_on_the_cpu_have_rows_that_are_those_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    assert cpu_calls.main([*GIVEN, "--csv", str(path)]) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["operation"] for row in rows] == [kind for kind in cpu_calls.KINDS for _ in "12"]
    for row in rows:
        assert row["verified"] == "True"
        quotient = float(row["numpy_us"]) / float(row["time_us"])
        np.testing.assert_allclose(float(row["ratio"]), quotient, rtol=1e-9)


def test_a_wrong_call_on_the_cpu_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: Any) -> Any:
        found = herk(x)
        found[..., -1, 0] += 1e-2 * np.abs(found).max()
        return found

    monkeypatch.setattr(kinds, "herk", wrong)
    assert cpu_calls.main([*GIVEN, "--kinds", "herk"]) == 1


CASES = examples(15)


@pytest.mark.parametrize("kind", exceedances.DRAWN)
def test_random_cases_are_within_their_bounds(kind: str) -> None:
    rows, ratios, said = exceedances.run(exceedances.Task(kind, range(100, 100 + CASES), 3, "cpu"))
    assert said == []
    assert [row.precision for row in rows] == list(KINDS[kind].case_type.precision_names)
    assert {row.cases for row in rows} == {CASES}
    assert all(ratio >= 1 for found in ratios.values() for ratio in found)


def test_exceedances_are_written_as_the_page_shows_them(tmp_path: Path) -> None:
    path = tmp_path / "exceedances-cpu.csv"
    given = ["--cases", "3", "--kinds", "softmax", "--jobs", "1", "--seed", "5"]
    assert exceedances.main([*given, "--out", str(path)]) == 0
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["precision"], row["cases"]) for row in rows] == [
        (p, "3") for p in SOFTMAX_PRECISIONS
    ]
    counts = f"| softmax | CPU | {3 * len(SOFTMAX_PRECISIONS)} | 0 | 0 |"
    assert counts in exceedances_table(tmp_path)
