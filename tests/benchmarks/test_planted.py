"""Planted errors: what is planted, what counts as caught, and that no fewer are than recorded."""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu

from benchmarks.planted import __main__ as command
from benchmarks.planted import campaign
from benchmarks.planted.campaign import PlantedRow, rows_for
from benchmarks.planted.cases import NAMES
from benchmarks.planted.errors import planted, scaled
from tests.covers import EXHAUSTIVE, examples
from workflow.accuracy import Accuracy
from workflow.workloads import KINDS
from workflow.workloads.gemm import Gemm

SMALL = examples(3)
"""Cases of each kind: the first of those that are recorded."""
SOME = [list(PRECISIONS)] if EXHAUSTIVE else [["fp64", "3xtf32"], ["fp32", "bf16"]]
"""The precisions of one kind, of the next, and so on in turn."""


def measured(kind: str, precisions: list[str], count: int = SMALL) -> list[PlantedRow]:
    return [row for row, _ in rows_for(kind, precisions, cpu(), count, command.SEED)]


TURNS = [
    pytest.param(name, precisions, id=name, marks=() if name in KINDS else pytest.mark.slow)
    for name, precisions in zip(NAMES, itertools.cycle(SOME), strict=False)
]


@pytest.mark.parametrize(("kind", "precisions"), TURNS)
def test_what_is_caught_may_only_grow(kind: str, precisions: list[str], root: Path) -> None:
    """A kind and precision catch what docs/data/planted.csv says, at least."""
    with (root / "docs" / "data" / "planted.csv").open() as file:
        recorded = {
            (row["kind"], row["reference"], row["precision"]): row for row in csv.DictReader(file)
        }
    for row in measured(kind, precisions):
        what = f"{kind} {row.reference} {row.precision}"
        before = recorded.get((kind, row.reference, row.precision), {})
        assert before, f"{what} is not recorded: run benchmarks.planted as docs/adding.md says"
        assert not row.failed, what
        if row.precision in ("fp64", "fp32"):
            assert row.unproven < row.cases, what
        if row.unproven == row.cases:
            continue  # nothing is verified, whatever is planted
        missed = {part.rsplit(" ", 3)[0] for part in row.missed.split("; ") if part}
        assert not missed & set(before["always"].split("; ")), what
        for name in ("largest", "typical", "random", "whole"):
            depth = getattr(row, name)
            assert (-1 if depth is None else depth) >= float(before[name] or -1), (what, name)


def test_every_error_changes_a_copy_and_only_that(rng: np.random.Generator) -> None:
    result = (rng.standard_normal((2, 3, 5)) + 1j).astype(np.complex64)
    before = result.copy()
    found = dict(planted(result, rng))
    assert {"zero all", "NaN row", "sign largest", "swap rows", "exponent bit random"} <= set(found)
    assert all(not np.array_equal(wrong, before) for wrong in found.values())
    np.testing.assert_array_equal(result, before)
    assert scaled(result, (0, 0), 9) is None  # 1 + 1e-9 is 1 in single precision
    changed = scaled(result, (0, 0), 1)
    assert changed is not None
    assert np.count_nonzero(changed != before) == 1


@pytest.mark.parametrize(("reason", "counted"), [("not provable", "unproven"), ("off", "failed")])
def test_a_result_that_does_not_verify_has_no_trials(
    reason: str, counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assess = Gemm.assess

    def refuse(self: Gemm, *given: object) -> Accuracy:
        found: Accuracy = assess(self, *given)  # type: ignore[arg-type]
        return replace(found, verified=False, reason=reason)

    monkeypatch.setattr(Gemm, "assess", refuse)
    row = measured("gemm", ["fp32"], 1)[0]
    assert (row.cases, getattr(row, counted), row.tries, row.whole) == (1, 1, 0, None)


def test_precisions_that_a_kind_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gemm.case_type, "precision_names", ("fp64",))
    assert [row.precision for row in measured("gemm", ["bf16", "fp64"], 1)] == ["fp64"]


def test_a_verification_that_takes_everything_misses_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assess = Gemm.assess

    def accept(self: Gemm, *given: object) -> Accuracy:
        found: Accuracy = assess(self, *given)  # type: ignore[arg-type]
        return replace(found, verified=True, reason="")

    monkeypatch.setattr(Gemm, "assess", accept)
    row = measured("gemm", ["fp32"], 1)[0]
    assert row.caught == 0 < row.tries
    assert "zero all 1 of 1" in row.missed
    assert (row.always, row.whole) == ("", None)


def test_the_command_writes_rows_and_says_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "planted.csv"
    given = ["--kinds", "dft", "--precisions", "fp64", "bf16", "--cases", "1", "--csv", str(out)]
    assert command.main(given) == 0
    out.write_text(out.read_text() + out.read_text().splitlines()[-1].replace("dft", "gemm") + "\n")
    assert command.main(given) == 0
    with out.open() as file:
        rows = [(row["kind"], row["precision"]) for row in csv.DictReader(file)]
    assert rows == [("gemm", "bf16"), ("dft", "fp64"), ("dft", "bf16")], "other rows stay"
    monkeypatch.setattr(campaign, "UNPROVEN", "nothing says this")
    monkeypatch.setattr(
        "workflow.workloads.dft.Dft.assess",
        lambda *_: Accuracy(
            verdict="wrong", verified=False, reason="off", reference="full", reference_rows=1
        ),
    )
    assert command.main(given) == 1
    assert "not verified as it is: dft bf16" in capsys.readouterr().out
