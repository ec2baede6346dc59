"""The table of measured plans of transforms, without a GPU."""

from __future__ import annotations

import json

import pytest
from argand import PRECISIONS, tune_dft
from argand.dft import few_rows, tuned
from argand.dft.few_rows import plan_of_few_rows
from argand.dft.heuristics import Choice, own_plan
from argand.dft.library_choice import LibraryKernels
from argand.dft.method import method_for
from argand.dft.plan import Plan
from argand.dft.problem import DftProblem
from argand.dft.tune import candidate_plans
from argand.dft.tuned import TunedDft, chosen, key

from tests.kernels.gemm.tuning_cases import HOPPER, card

FEW = few_rows.FEW_NUMBERS
ROW = PRECISIONS["3xfp16"]
DEVICE = 0

pytestmark = pytest.mark.usefixtures("card_without_tables")


def problem(length: int, rows: int = 1000, precision: str = "3xfp16") -> DftProblem:
    return DftProblem(rows, length, False, "backward", PRECISIONS[precision])


def best(length: int, *, wide: bool = False) -> Plan:
    plan = own_plan(method_for(length), ROW, HOPPER, wide=wide)
    assert plan is not None
    return plan


def keep(length: int, plan: Plan | None, *, wide: bool = False) -> None:
    name = key(1000, length, ROW, wide=wide)
    tuned.TABLE.keep(DEVICE, {name: TunedDft.of(plan)})


def test_what_was_measured_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    one = LibraryKernels(several=False, numbers=25, blocks=16)
    monkeypatch.setattr(tuned, "library_kernels", lambda *_: one)
    before = chosen(problem(1009), card())
    assert before.plan is not None
    keep(1009, None)
    found = chosen(problem(1009), card())
    assert found == Choice(None, "the fastest plan measured on this device")
    assert chosen(problem(1009, precision="tf32"), card()).plan is not None
    assert chosen(problem(1009, rows=1), card()).plan is not None
    assert chosen(problem(1013), card()).plan is not None
    keep(1000, best(1000, wide=True), wide=True)
    assert chosen(problem(1000), card()).plan == best(1000, wide=True)
    assert chosen(problem(1000), card(), wide=False).plan is None


def test_cufft_is_asked_where_rows_fill_the_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules by factors leave some lengths open: no primes, no dense ones."""
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", FEW)
    asked: list[tuple[int, int]] = []

    def library(length: int, rows: int, _: int) -> LibraryKernels:
        asked.append((length, rows))
        return LibraryKernels(several=True, numbers=0)

    monkeypatch.setattr(tuned, "library_kernels", library)
    for length, rows, ours in ((4180, 1000, True), (4180, 1, False), (64, 1 << 16, False)):
        assert (chosen(problem(length, rows), card()).plan is not None) == ours
    assert chosen(problem(1009), card()).plan is not None
    assert asked == [(4180, 1000)]


def test_rows_that_fill_any_card_share_an_entry() -> None:
    assert key(1 << 20, 1000, ROW, wide=True) == key(1 << 24, 1000, ROW, wide=True)
    assert key(1, 1 << 20, ROW, wide=True) != key(8, 1 << 20, ROW, wide=True)
    assert key(1, 64, ROW, wide=True) != key(1, 64, ROW, wide=False)


@pytest.mark.parametrize(
    ("name", "plan", "message"),
    [
        (key(9, 1013, ROW, wide=False), best(1009), "does not compute"),
        (key(9, 1000, ROW, wide=False), best(1000, wide=True), "does not compute"),
        (key(9, 131, PRECISIONS["tf32"], wide=True), best(131, wide=True), "16-bit operands"),
    ],
    ids=["another length", "narrow rows", "another precision"],
)
def test_what_cannot_solve_an_entry_is_damage(name: str, plan: Plan, message: str) -> None:
    row = json.loads(json.dumps(vars(TunedDft.of(plan))))
    with pytest.raises(ValueError, match=message):
        tuned._entry(name, row, card())


def test_a_damaged_table_is_only_lost_time() -> None:
    path = tuned.TABLE.path(DEVICE)
    keep(1009, None)
    text = json.loads(path.read_text())
    text["choices"][key(1000, 1009, ROW, wide=False)] = {"words": '{"kind": "none"}'}
    path.write_text(json.dumps(text))
    tuned.TABLE.forget()
    tuned.TABLE.changed()
    with pytest.warns(RuntimeWarning, match="until `argand.tune_dft`"):
        assert chosen(problem(1009), card()).plan is not None


def test_ways_are_cufft_and_some_of_each_kind() -> None:
    assert candidate_plans(8, 1, ROW, card()) == [None]
    found = candidate_plans(8, 10_007, ROW, card(), 2)
    assert [None if plan is None else plan.kind for plan in found] == [
        None, "butterfly", "butterfly", "three_kernel", "three_kernel",
    ]  # fmt: skip
    few = candidate_plans(512, 509, ROW, card())
    assert few[-1] == plan_of_few_rows(509, 512, card())
    assert few[:-1] == candidate_plans(1 << 15, 509, ROW, card())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0, 100), "must be positive, got 0"), ((1, 0), "n must be from 1"),
        ((1, 100, "fp32"), "cuFFT solves it"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_said(given: tuple[int, int], message: str) -> None:
    rows, length, *precision = given
    with pytest.raises(ValueError, match=message):
        tune_dft(rows, length, precision=precision[0] if precision else "3xfp16")
