"""Sizes that a seed draws, what a sweep measures of them, and what is said of their times."""

from __future__ import annotations

import csv
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Device, gemm
from argand.runtime.measuring.timing import Queued
from argand.runtime.plan import PlanError

from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.rows import write_rows
from benchmarks.peers import Candidate
from benchmarks.sweep import figure, regrets
from benchmarks.sweep.__main__ import main
from benchmarks.sweep.case import Case, Row
from benchmarks.sweep.checking import assessed
from benchmarks.sweep.draws import SWEEPS, drawn
from benchmarks.sweep.in_turn import Task
from benchmarks.sweep.measuring import calls_of, sets_of, with_ratios
from benchmarks.sweep.products import ProductCase
from benchmarks.sweep.regrets import plan_rows, plan_times
from benchmarks.sweep.summary import summary
from tests.kernels.precisions import TENSOR
from tools.docs.sweep_tables import regret_table, sweep_table


@pytest.mark.parametrize("what", SWEEPS)
def test_a_seed_draws_the_same_cases(what: str) -> None:
    first, again, other = (
        [(case.operation, case.shape, case.kind) for case in drawn(what, 30, seed)]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == 30
    if what == "small":
        sizes = [int(part) for _, shape, _ in first for part in shape.split("x")]
        assert min(sizes) >= 1
        assert max(sizes) <= 512
    if what == "few_rows":
        rows, columns = np.transpose([list(map(int, shape.split("x"))) for _, shape, _ in first])
        assert 1 <= rows.min() <= rows.max() <= 1 << 12
        assert 16 <= columns.min() <= columns.max() <= 1 << 16
        assert (rows * columns).max() <= 1 << 24


def test_products_of_complex64_are_multiplied_by_exact_integers_too() -> None:
    """Small products and those with 16-bit results are not."""
    device = Device("cpu", "")
    for what, some in (("gemm", {True, False}), ("small", {False})):
        products = [case for case in drawn(what, 40, 1) if case.operation == "gemm"]
        ours = {case.kind: {one.precision.name for one in case.ours(device)} for case in products}
        assert {"7xint8" in names for names in ours.values()} == some
        assert not any("7xint8" in ours[kind] for kind in ours if "half" in kind)
    case = ProductCase(Shape(12, 9, 20), "C", exact=True)
    *_, exact = case.ours(device)
    assert exact.precision.name == "7xint8"
    operands = case.operands(device, 1)
    check = case.assessment(operands, device)
    assert isinstance(check, ProductCheck)
    found = check(exact.result(exact.compute(*exact.prepare(*operands))), exact)
    assert found.verified, found.reason


def test_small_cases_are_measured_on_the_cpu(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "rows.csv"
    given = ["small", "--cases", "3", "--seed", "8", "--device", "cpu", "--csv", str(path)]
    assert main(given) == 0
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["operation"] for row in rows} == {"gemm", "softmax", "dft"}
    assert {row["implementation"] for row in rows} >= {"argand", "numpy", "scipy"}
    for row in rows:
        assert row["verified"] == "True", row["reason"]
        assert float(row["time_us"]) > 0
    said = capsys.readouterr().out
    assert "of the best peer" in said
    assert "of a copy's rate" in said


def test_the_parts_of_a_sweep_are_its_cases(tmp_path: Path) -> None:
    def shapes(*part: str) -> set[str]:
        path = tmp_path / "part.csv"
        given = ["small", "--cases", "3", "--seed", "8", "--device", "cpu", "--csv", str(path)]
        assert main([*given, *part]) == 0
        with path.open() as file:
            return {row["shape"] for row in csv.DictReader(file)}

    parts = shapes("--part", "0/2"), shapes("--part", "1/2")
    assert list(map(len, parts)) == [2, 1]
    assert parts[0] | parts[1] == {case.shape for case in drawn("small", 3, 8)}
    for wrong in ("2/2", "1", "-1/2", "0/0"):
        with pytest.raises(SystemExit):
            main(["small", "--seed", "8", f"--part={wrong}"])


def test_what_another_process_is_given_is_checked_alike(rng: np.random.Generator) -> None:
    shape = Shape(12, 9, 20)
    a, b = (rng.standard_normal((*size, 2)).astype("f4").view("c8")[..., 0]
            for size in ((12, 20), (20, 9)))  # fmt: skip
    check = ProductCheck(shape, a, b, backend="cpu", seed=1)
    results = []
    for precision in (PRECISIONS[name] for name in TENSOR):
        right = gemm(a, b, precision=precision.name)
        wrong = right.copy()
        wrong[3, 4] *= 1.5
        results += [(check.taken(x), precision, "complex64") for x in (right, wrong)]
    found = assessed(*pickle.loads(pickle.dumps((check, results))))
    assert found == [check.assess_output(*result) for result in results]
    assert [one.verified for one in found] == [True, False] * len(TENSOR)


def row(shape: str, precision: str, time: float, **changed: Any) -> Row:
    given = {
        "operation": "gemm", "shape": shape, "kind": "NN", "precision": precision,
        "implementation": "argand", "time_us": time, "host_us": 1.0, "of_copy": 0.5, "tflops": 1.0,
        "ratio": None, "regret": None, "error": 1e-4, "verified": True, "plan": "", "reason": "",
        "peer_class": precision, "device": "", "seed": 1, "kernel_digest": "", "versions": "",
        "timestamp": "",
    }  # fmt: skip
    return Row(**(given | changed))


def test_a_ratio_is_to_the_best_verified_peer_of_the_class() -> None:
    mine, *_ = with_ratios([
        row("a", "tf32", 4.0),
        row("a", "tf32", 2.0, implementation="torch"),
        row("a", "tf32", 3.0, implementation="cublas"),
        row("a", "tf32", 1.0, implementation="wrong", verified=False),
        row("a", "fp32", 1.0, implementation="cublas"),
        row("a", "tf32", 1.0, implementation="plan"),
    ])  # fmt: skip
    assert mine.ratio == 0.5


class _OfPlans(Case):
    """A case whose plans take as many microseconds as their numbers say; the call takes plan 2."""

    operation, flops, bytes_moved = "gemm", 1e6, 1e6

    def __init__(self) -> None:
        self.plan = 2.0

    def plans(self, *_: Any) -> list[float]:
        return [3.0, 1.0, 0.5]

    @contextmanager
    def with_plan(self, plan: float) -> Iterator[None]:
        if plan == 0.5:
            raise PlanError("not at these addresses")
        before, self.plan = self.plan, plan
        yield
        self.plan = before

    operands = ours = peers = assessment = None  # type: ignore[assignment]


def test_a_regret_is_that_of_the_chosen_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    case = _OfPlans()
    one = Candidate("argand", PRECISIONS["tf32"], "", lambda: (), lambda: None)

    def times(tasks: list[Task], _: int) -> list[Queued]:
        found = []
        for task in tasks:
            with task.taking() if task.taking else nullcontext():
                found.append(Queued([1e-6 * case.plan], [0.0], held=True))
        return found

    monkeypatch.setattr(regrets, "prepared", lambda calls: (Task(calls, 1e-6), True))
    monkeypatch.setattr(regrets, "timed_in_turn", times)
    found = plan_times(case, one, ())
    assert found is not None
    assert [plan for plan, _ in found.found] == [1.0, 3.0]
    mine, *others = plan_rows(case, row("a", "tf32", 7.0), found)
    assert mine.time_us == 7.0
    assert mine.regret == pytest.approx(2.0)
    assert [(other.implementation, other.plan) for other in others] == [
        ("plan", "1.0"), ("plan", "3.0"),
    ]  # fmt: skip
    monkeypatch.setattr(case, "plans", lambda *_: [0.5])
    assert plan_times(case, one, ()) is None


@pytest.mark.parametrize(("values", "sets"), [(1000, 16), (1 << 17, 8), (1 << 20, 4), (1 << 26, 1)])
def test_results_lie_in_as_many_places_as_operands(values: int, sets: int) -> None:
    """Whether a candidate is given places for its results or allocates them."""
    case = _OfPlans()
    case.bytes_moved = 16.0 * values
    x = np.ones(1000)
    given = Candidate("a", PRECISIONS["fp32"], "", lambda x: (x, np.empty_like(x)), np.negative)
    allocating = Candidate("b", PRECISIONS["fp32"], "", lambda x: (x,), np.negative)
    for candidate in (given, allocating):
        calls = calls_of(candidate, sets_of(case, (x,)), candidate.prepare(x))
        assert len({call().__array_interface__["data"][0] for call in calls}) == sets  # type: ignore[attr-defined]


def test_the_summary_counts_what_is_slower() -> None:
    rows = [
        row("a", "tf32", 2.0, ratio=0.5), row("b", "tf32", 1.0, ratio=2.0, regret=1.5),
        row("c", "tf32", 1.0, ratio=0.99), row("d", "tf32", 1.0),
        row("a", "fp16", 4.0), row("b", "fp16", 0.5),
        row("a", "3xtf32", 4.0, ratio=0.6), row("a", "3xfp16", 5.0, ratio=0.5),
        row("b", "3xtf32", 4.0, ratio=2.0), row("b", "3xfp16", 3.0, ratio=3.0),
        row("b", "7xint8", 2.0, ratio=4.5), row("b", "6xint8", 1.0, ratio=9.0),
        row("e", "tf32", 1.0, ratio=0.1, implementation="torch"),
        row("g", "tf32", 1.0, ratio=0.1, verified=False, reason="too far"),
    ]  # fmt: skip
    text = "\n".join(summary(rows))
    assert "   3 cases,   1 slower than 0.97 of the best peer; worst 0.50" in text
    assert "geometric mean 1.00" in text
    assert "   1 cases with every plan: regret median 1.50" in text
    compared = dict(re.findall(r"gemm (\S.*?) {2,}(\d+ cases, .*)", text))
    assert compared["fp16 beside tf32"].startswith("2 cases,   1 slower than 0.97; worst 0.50")
    assert compared["fp32 class"].startswith("2 cases,   1 slower than 0.97; worst 0.60")
    assert "geometric mean 1.64" in compared["fp32 class"]  # of 0.6 and 4.5: 6 moduli are not of it
    assert compared["fp32 class, library 0 to 15 us"] == compared["fp32 class"]
    assert "1 results of ours did not verify" in text
    assert "too far" in text
    assert text.index(" 0.50  gemm a") < text.index(" 0.99  gemm c")


def test_recorded_sweeps_are_summed_up_and_drawn(tmp_path: Path) -> None:
    rows = [row("a", "tf32", 2.0, ratio=0.5, regret=1.5), row("b", "tf32", 1.0, ratio=2.0),
            row("c", "tf32", 1.0, ratio=9.0, verified=False)]  # fmt: skip
    write_rows(tmp_path / "h200-sweep-gemm.csv", [asdict(one) for one in rows])
    write_rows(tmp_path / "h200-sweep-gemm-plans.csv", [
        asdict(one) for one in (rows[0], row("d", "fp16", 1.0, regret=1.0))
    ])  # fmt: skip
    regrets = regret_table(tmp_path)
    assert "| H200 | gemm at any precision | 2 | 1.25 | 1.45 | 1.50 |" in regrets
    assert "| H200 | gemm fp16 | 1 | 1.00 | 1.00 | 1.00 |" in regrets
    table = sweep_table(tmp_path)
    assert "| H200 | gemm | gemm tf32 | 2 | 1 | 0.50 |" in table
    svg = tmp_path / "sweeps.svg"
    assert figure.main([str(tmp_path), str(svg)]) == 0
    assert "tf32, H200" in svg.read_text()
    assert figure.main([str(tmp_path / "nothing"), str(svg)]) == 2
