"""The covers by which the short run chooses combinations."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

from tests.covers import EXHAUSTIVE, cover, examples, is_exhaustive

AXES = {"precision": range(7), "sizes": range(5), "left": range(4), "right": range(4)}
ROWS = [dict(zip(AXES, values, strict=True)) for values in product(*AXES.values())]


def parts(rows: list[dict[str, Any]], strength: int) -> set[Any]:
    return {part for row in rows for part in combinations(sorted(row.items()), strength)}


@pytest.mark.parametrize(("strength", "most"), [(1, 7), (2, 50), (3, 200)])
def test_every_combination_is_held_by_few_rows(strength: int, most: int) -> None:
    found = cover(ROWS, strength=strength)
    assert parts(found, strength) == parts(ROWS, strength)
    assert len(found) <= most < len(ROWS)
    assert found == [row for row in ROWS if row in found], "in their order"
    for row in found:
        others = [other for other in found if other is not row]
        assert parts(others, strength) != parts(ROWS, strength), "none can be left out"


def test_only_what_some_row_holds_is_required() -> None:
    legal = [row for row in ROWS if row["left"] <= row["right"]]
    found = cover(legal)
    assert all(row in legal for row in found)
    assert parts(found, 2) == parts(legal, 2)
    assert cover([]) == []
    assert cover(ROWS[:1]) == ROWS[:1]


def test_dataclasses_are_covered_by_their_fields_and_others_by_a_function() -> None:
    @dataclass(frozen=True)
    class Plan:
        rows: int
        wide: bool

    plans = [Plan(rows, wide) for rows in (1, 2, 3) for wide in (False, True)]
    assert {plan.rows for plan in cover(plans, strength=1)} == {1, 2, 3}
    assert cover(range(6), lambda number: {"odd": number % 2}, 1) == [0, 1]


@pytest.mark.parametrize(("word", "found"), [("short", False), ("all", True)])
def test_the_environment_chooses(word: str, found: bool) -> None:
    assert is_exhaustive({"ARGAND_TESTS": word}) is found
    assert not is_exhaustive({})


def test_fewer_examples_but_never_none() -> None:
    assert [examples(count) for count in (1, 4, 1500)] == (
        [1, 4, 1500] if EXHAUSTIVE else [1, 1, 300]
    )


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of \['short', 'all'\], got 'full'"):
        is_exhaustive({"ARGAND_TESTS": "full"})


@pytest.mark.parametrize(("word", "tests"), [("short", 9), ("all", 27)])
def test_a_marked_test_runs_for_a_cover_or_for_all(
    word: str, tests: int, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters of fixtures count too; what has no mark runs for all of its parameters,
    and what is marked exhaustive in the exhaustive run alone."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.fixture(params=range(3))\n"
        "def c(request): return request.param\n"
        "@pytest.mark.pairwise\n"
        "@pytest.mark.parametrize('a', range(3))\n"
        "@pytest.mark.parametrize('b', range(3))\n"
        "def test_marked(a, b, c): pass\n"
        "@pytest.mark.parametrize('a', range(3))\n"
        "@pytest.mark.parametrize('b', range(3))\n"
        "def test_other(a, b): pass\n"
        "@pytest.mark.each_value\n"
        "@pytest.mark.parametrize('a', range(3))\n"
        "@pytest.mark.parametrize('b', range(2))\n"
        "def test_values(a, b): pass\n"
        "@pytest.mark.exhaustive\n"
        "def test_again(): pass\n"
    )
    monkeypatch.setenv("ARGAND_TESTS", word)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    command = [
        sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml"),
        f"--rootdir={tmp_path}", "-p", "tests.conftest", "-p", "no:cacheprovider",
        "--collect-only", str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("test_it.py::test_other[") == 9
    assert done.stdout.count("test_it.py::test_marked[") in range(tests, tests + 3)
    assert done.stdout.count("test_it.py::test_values[") == (3 if word == "short" else 6)
    deselected = re.search(r"(\d+) deselected", done.stdout)
    assert bool(deselected) == (word == "short")
    assert ("test_it.py::test_again" in done.stdout) == (word == "all")
