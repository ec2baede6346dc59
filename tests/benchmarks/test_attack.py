"""The campaign of attacks: what it counts, what ends a child, and what damage is."""

from __future__ import annotations

import ctypes
import json
import shutil
import time
from pathlib import Path
from typing import Any

import argand
import h5py
import numpy as np
import pytest

from benchmarks.attack import __main__ as command
from benchmarks.attack import api, array_calls, nasty
from benchmarks.attack.campaign import Attack, Attempt, Campaign, NotTriedError, require
from benchmarks.attack.damage import _damaged
from benchmarks.attack.isolation import isolated
from benchmarks.attack.studies import contents, difference, prepare
from tools.docs.attack_tables import attack_table


class TestIsolation:
    def test_an_error_comes_back_by_name(self) -> None:
        found = isolated(lambda: int("x"))
        assert (found.how, found.error) == ("raised", "ValueError")
        assert isolated(lambda: require(False, "so")).error.endswith("campaign.SlippedError")

    def test_the_end_of_a_process_is_an_outcome(self) -> None:
        found = isolated(lambda: ctypes.string_at(0))
        assert (found.how, found.text) == ("ended", "SIGSEGV")

    def test_time_is_limited(self) -> None:
        started = time.monotonic()
        found = isolated(lambda: time.sleep(60), seconds=0.2)
        assert (found.how, found.text) == ("ended", "the limit of 0.2 s")
        assert time.monotonic() - started < 20

    def test_memory_is_limited(self) -> None:
        found = isolated(lambda: len(np.ones(1 << 28)), memory=1 << 28)
        assert found.error.endswith("MemoryError")


def holds(attempt: Attempt) -> None:
    assert attempt.folder.is_dir()


def slips(attempt: Attempt) -> None:
    require(attempt.number % 2 == 0, f"number {attempt.number} drew {attempt.rng.random():.6f}")


def fails(attempt: Attempt) -> None:
    raise KeyError("not foreseen")


def cannot(attempt: Attempt) -> None:
    raise NotTriedError("no machine of that kind")


def campaign(*attacks: Attack) -> Campaign:
    return Campaign(attacks, seed=1, root=Path())


class TestCampaign:
    def test_what_holds_and_what_slips(self) -> None:
        run = campaign(Attack("good", "", holds, 1, most=3), Attack("bad", "", slips, 1, most=4))
        good, bad = run.rows(60)
        assert (good.tries, good.held, good.slipped) == (3, 3, 0)
        assert (bad.tries, bad.held, bad.slipped) == (4, 2, 2)
        assert "python -m benchmarks.attack --only bad --seed 1 --number 3" in run.slips[1]

    def test_an_attempt_is_made_again_by_its_number(self) -> None:
        all_of, one = (
            campaign(Attack("bad", "", slips, 1, most=4)),
            campaign(Attack("bad", "", slips, 1)),
        )
        list(all_of.rows(60))
        (row,) = one.rows(60, number=3)
        assert (row.tries, row.slipped) == (1, 1)
        assert one.slips == all_of.slips[1:]

    def test_what_an_attack_does_not_foresee_counts_as_a_slip(self) -> None:
        run = campaign(Attack("odd", "", fails, 1, most=1))
        (row,) = run.rows(60)
        assert row.slipped == 1
        assert "the attempt itself failed" in run.slips[0]

    def test_what_this_machine_cannot_is_no_attempt(self) -> None:
        run = campaign(Attack("none", "", cannot, 1))
        (row,) = run.rows(60)
        assert row.tries == 0
        assert run.notes == ["none: not tried further: no machine of that kind"]

    def test_the_least_is_made_when_the_time_is_over(self) -> None:
        run = campaign(Attack("good", "", holds, 1), Attack("bad", "", slips, 1, least=3))
        assert [row.tries for row in run.rows(0)] == [1, 3]


def test_the_command_writes_its_table_and_its_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        command,
        "ATTACKS",
        (Attack("good", "what", holds, 1, most=2), Attack("bad", "", slips, 1, most=2)),
    )
    out = tmp_path / "attack.csv"
    assert command.main(["--only", "good", "--csv", str(out)]) == 0
    assert "| good | what | 2 | 2 | 0 |" in attack_table(tmp_path)
    assert command.main(["--minutes", "1"]) == 1
    assert "--only bad --seed 1 --number 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="name it by --only"):
        command.main(["--number", "1"])


def test_an_attack_is_real() -> None:
    assert command.main(["--only", "api-readout", "--number", "0"]) == 0


def test_damage_changes_a_file_of_any_kind(tmp_path: Path, rng: np.random.Generator) -> None:
    prepare(tmp_path)
    (tmp_path / "x.jsonl").write_text('{"error": 1.5e-7}\n' * 3)
    for name in ("in.h5", "x.jsonl"):
        before = (tmp_path / name).read_bytes()
        ways = set()
        for _ in range(60):
            how, data = _damaged(tmp_path / name, rng)
            assert data != before
            ways.add(how.split()[0])
        assert ways >= ({"bit", "all", "the"} if name == "in.h5" else {"another", "without"})
        assert (tmp_path / name).read_bytes() == before


def test_two_results_are_compared_without_what_a_clock_says(tmp_path: Path) -> None:
    for name, time_us, error in (("a", 1, 0.5), ("b", 2, 0.5), ("c", 1, 0.25)):
        tables, products = (tmp_path / name / "results" / kind for kind in ("tables", "products"))
        tables.mkdir(parents=True)
        products.mkdir()
        (tables / "performance.csv").write_text(
            f"workload,time_us_p50,error\nx,{time_us},{error}\n"
        )
        with h5py.File(products / "x.h5", "w") as file:
            file["entry/data"] = np.ones(3)
            file["entry/time_us_p50"] = time_us
    assert difference(tmp_path / "a", tmp_path / "b") == ""
    assert "performance.csv" in difference(tmp_path / "a", tmp_path / "c")
    with h5py.File(tmp_path / "b/results/products/x.h5", "r+") as file:
        file["entry/data"][1] = 2
    assert difference(tmp_path / "a", tmp_path / "b") == "results/products/x.h5 differs"
    assert json.dumps(list(contents(tmp_path / "a/results/products/x.h5")))
    shutil.rmtree(tmp_path / "b/results/products")
    assert difference(tmp_path / "b", tmp_path / "a") == "products [] instead of ['x.h5']"


def test_layouts_and_targets_hold_the_same_numbers(rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, 4)).astype(np.complex64)
    layouts, targets = set(), set()
    for _ in range(200):
        way, y = nasty.arranged(rng, x)
        np.testing.assert_array_equal(x, y)
        where, z, out = nasty.target(rng, y, x.shape, "complex64")
        np.testing.assert_array_equal(x, z)
        assert out is None or (out.shape, str(out.dtype)) == (x.shape, "complex64")
        assert where != "out overlaps" or np.shares_memory(z, out)
        layouts.add(way)
        targets.add(where)
    assert len(layouts) == 10
    assert len(targets) == 5


def test_an_error_below_argand_is_no_documented_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's own error is one that nobody foresaw; one that Argand raises is an answer."""

    def short(rng: np.random.Generator) -> tuple[str, str]:
        return "", str(argand.softmax(np.zeros((2, 0))))

    def broken(rng: np.random.Generator) -> tuple[str, str]:
        return "", str(np.zeros(0).reshape(1, -1, 2).max(axis=-1))

    for function, held in ((short, True), (broken, False)):
        monkeypatch.setitem(api.FUNCTIONS, "one", function)
        assert (api._calls("one", np.random.default_rng(1)) == "") == held


@pytest.mark.parametrize("name", array_calls.FUNCTIONS)
def test_right_results_of_nasty_data_hold_and_wrong_ones_do_not(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faults() -> list[str]:
        calls = [np.random.default_rng([1, number]) for number in range(8)]
        return [fault for _, fault in map(array_calls.FUNCTIONS[name], calls) if fault]

    assert not faults()
    called = "probabilities" if name == "readout" else name
    right = getattr(argand, called)

    def wrong(*given: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return 1.5 * right(*given, **options)

    monkeypatch.setattr(argand, called, wrong)
    assert faults()
