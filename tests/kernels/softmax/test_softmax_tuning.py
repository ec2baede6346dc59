"""The table of tuned plans of softmaxes, without a GPU."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import arch_for
from argand.softmax import tuned
from argand.softmax.candidates import SoftmaxCandidate, candidate_plans, every_candidate
from argand.softmax.heuristics import plan_softmax
from argand.softmax.legality import check_row
from argand.softmax.plan import SoftmaxForm
from argand.softmax.tune import main, tune_softmax

from tests.kernels.gemm.tuning_cases import card

HOPPER = arch_for(90)
FORM = SoftmaxForm("softmax", "fp32", "fp32", PRECISIONS["fp32"], 4, unaligned_rows=False)
ROWS, COLUMNS = 1000, 32_768
CANDIDATE = SoftmaxCandidate(384, 4, epilogue_stages=4, write_threads=128)
DEVICE = 0


pytestmark = pytest.mark.usefixtures("card_without_tables")


def keep(candidate: SoftmaxCandidate = CANDIDATE, form: SoftmaxForm = FORM) -> Path:
    tuned.TABLE.keep(DEVICE, {tuned.key(form, ROWS, COLUMNS): candidate})
    return tuned.TABLE.path(DEVICE)


def looked_up(rows: int = ROWS, columns: int = COLUMNS) -> SoftmaxCandidate | None:
    return tuned.lookup(FORM, rows, columns, DEVICE)


def test_what_was_kept_serves_its_neighbourhood() -> None:
    assert looked_up() is None
    before = tuned.TABLE.generation
    keep()
    assert tuned.TABLE.generation == before + 1
    assert looked_up() == looked_up(1050, 31_000) == CANDIDATE
    assert looked_up(columns=40_000) is None
    assert looked_up(rows=8) is None


def test_rows_that_fill_any_card_share_an_entry() -> None:
    assert tuned.key(FORM, 5000, 64) == tuned.key(FORM, 10**7, 64)


def test_everything_that_a_choice_depends_on_is_in_the_key() -> None:
    forms = [
        FORM, replace(FORM, operation="logsumexp"), replace(FORM, input="fp16"),
        replace(FORM, output="bf16"), replace(FORM, precision=PRECISIONS["tf32"]),
        replace(FORM, vector=2), replace(FORM, unaligned_rows=True),
        replace(FORM, unit_scale=False),
    ]  # fmt: skip
    assert len({tuned.key(form, ROWS, COLUMNS) for form in forms}) == len(forms)


@pytest.mark.parametrize("columns", [1000, 12_289, 50_257, 1 << 20])
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_every_candidate_comes_back_from_the_file_and_makes_its_plan(
    columns: int, kind: str
) -> None:
    vector = 4 if kind == "fp32" else 8
    form = SoftmaxForm(
        "softmax", kind, kind, PRECISIONS["fp32"], vector, unaligned_rows=columns % vector != 0
    )
    found = candidate_plans(form, HOPPER, 132, columns)
    assert found
    for candidate, plan in found.items():
        check_row(plan, form, columns)
        row = json.loads(json.dumps(vars(candidate)))
        assert tuned._entry("", row, card()) == candidate
        assert plan == plan_softmax(
            form, HOPPER, rows=5000, columns=columns, sm_count=132, measured=candidate
        )


def test_a_candidate_that_is_not_legal_at_a_length_leaves_the_table() -> None:
    short = SoftmaxCandidate(32, 1)
    at = {"rows": 512, "columns": 1 << 20, "sm_count": 132}
    assert plan_softmax(FORM, HOPPER, **at, measured=short) == plan_softmax(FORM, HOPPER, **at)


@pytest.mark.parametrize(
    "change",
    [{"threads": 100}, {"cluster": 5}, {"epilogue_stages": 9}, {"warps": 4}, {"threads": "384"}],
    ids=str,
)
def test_an_entry_that_is_no_candidate_is_named(change: dict[str, Any]) -> None:
    path = keep()
    found = json.loads(path.read_text())
    (name,) = found["choices"]
    found["choices"][name] |= change
    path.write_text(json.dumps(found))
    tuned.TABLE.forget()  # as in a new process
    with pytest.warns(RuntimeWarning, match="choices by times of another device until"):
        assert looked_up() is None


def test_candidates_differ() -> None:
    assert len(set(every := every_candidate(132))) == len(every)


@pytest.mark.parametrize(
    ("given", "how", "message"),
    [
        ((0, 10), {}, "must be positive"),
        ((10, 10), {"operation": "max"}, "operation must be one of"),
        ((10, 10), {"input": "fp7"}, "input must be one of"),
        ((10, 10), {"precision": "fp7"}, "precision must be one of"),
        ((10, 10), {"output": "fp7"}, "output must be one of"),
    ],
)
def test_what_cannot_be_tuned_is_said(
    given: tuple[int, int], how: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tune_softmax(*given, **how)


def test_the_command_measures_each_shape(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def measured(rows: int, columns: int, **how: Any) -> list[tuple[SoftmaxCandidate, float]]:
        asked.append((rows, columns, how["input"]))
        return [(CANDIDATE, 20.0), (SoftmaxCandidate(512, 1), 30.0)]

    monkeypatch.setattr(sys.modules["argand.softmax.tune"], "tune_softmax", measured)
    assert main(["64x1048576", "4x5", "--input", "fp16"]) == 0
    assert asked == [(64, 1_048_576, "fp16"), (4, 5, "fp16")]
    printed = capsys.readouterr().out.splitlines()
    assert printed[2] == f"| 64x1048576 | {CANDIDATE} | 20.0 | 30.0 | 2 |"
    with pytest.raises(SystemExit):
        main(["8x8x8"])
