"""Two checkouts beside each other: each side's own argand computes, and the rows say so."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import argand
import pytest

from benchmarks.beside import __main__ as command
from benchmarks.beside.messages import Draw, Opened, Times
from benchmarks.beside.side import Side, SideError

ROW = command.Row("gemm", "4x4x4", "NN", "tf32")


def checkout(root: Path, further: str) -> Path:
    """A checkout with the modules of this one, and further lines behind its package's own."""
    package, ours = root / "kernels" / "argand", Path(argand.__file__).parent
    package.mkdir(parents=True)
    for path in ours.iterdir():
        if path.name != "__init__.py":
            (package / path.name).symlink_to(path)
    text = (ours / "__init__.py").read_text() + further
    (package / "__init__.py").write_text(text)
    return root


@pytest.mark.slow
def test_each_side_computes_by_its_own_argand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(command, "_ROUNDS", 1)
    other = checkout(
        tmp_path / "before",
        "\n_ours = gemm\n\n\ndef gemm(*args, **given):\n    return 2 * _ours(*args, **given)\n",
    )
    path = tmp_path / "rows.csv"
    given = ["small", "--cases", "2", "--seed", "3", "--device", "cpu", "--csv", str(path)]
    assert command.main([str(other), *given]) == 0
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["operation"] for row in rows} == {"gemm", "softmax"}
    for row in rows:
        assert (row["equal_bits"] == "True") == (row["operation"] == "softmax")
        assert float(row["ratio"]) == float(row["after_us"]) / float(row["before_us"]) > 0
    assert "1 calls, 0 with equal bits" in capsys.readouterr().out


def test_a_folder_without_argand_is_refused(tmp_path: Path, capsys: Any) -> None:
    assert command.main([str(tmp_path), "small", "--seed", "3", "--device", "cpu"]) == 1
    assert f"{tmp_path}: ImportError: no argand in kernels/" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_that_ended_in_a_call_answers_no_later_question(tmp_path: Path) -> None:
    ends = "\nimport os\n\n\ndef gemm(*args, **given):\n    os._exit(7)\n\n\nsoftmax = gemm\n"
    side = Side(checkout(tmp_path, ends), Draw("small", 1, 3, "cpu"))
    for question in (("open", 0, 0), ("labels", 0)):
        with pytest.raises(SideError, match="status 7"):
            side.call(*question)
    side.close()


class _Side:
    """A side with a plan and a time; it notes in which order calls are timed."""

    def __init__(self, name: str, plan: str, us: float, order: list[str]) -> None:
        self._name, self._plan, self._us, self._order = name, plan, us, order
        self.answered = 0

    def ask(self, name: str, *_: object) -> None:
        assert name == "open"

    def answer(self) -> Opened:
        self.answered += 1
        return Opened(self._plan, "bits")

    def call(self, name: str) -> Times:
        self._order.append(self._name)
        return Times(self._us, 1.0)


def measured(plans: tuple[str, str], only_changed: bool) -> tuple[command.Row, list[str]]:
    order: list[str] = []
    sides: Any = [
        _Side(*given, order) for given in zip("ba", plans, (8.0, 6.0), strict=True)
    ]  # fmt: skip
    return command._measured(ROW, sides, (0, 0), only_changed), order


def test_calls_are_timed_in_turn_and_each_goes_first_as_often() -> None:
    row, order = measured(("x", "y"), only_changed=True)
    assert row.ratio == 0.75
    assert row.equal_bits
    assert "".join(order) == "baab" * 3


def test_calls_of_the_same_kernels_may_be_left_out() -> None:
    row, order = measured(("x", "x"), only_changed=True)
    assert (row.ratio, row.reason, order) == (None, "the same kernels", [])
    assert measured(("x", "x"), only_changed=False)[0].ratio == 0.75


class _Refuses(_Side):
    """A side that cannot make its calls."""

    def answer(self) -> Opened:
        super().answer()
        raise SideError("no")


@pytest.mark.parametrize("refusing", [0, 1])
def test_an_error_of_one_side_leaves_no_answer_of_the_other_behind(refusing: int) -> None:
    sides: list[Any] = [_Side("b", "x", 8.0, []), _Refuses("a", "x", 6.0, [])]
    row = command._measured(ROW, sides if refusing else sides[::-1], (0, 0), False)
    assert (row.ratio, row.equal_bits, row.reason) == (None, None, "no")
    assert [side.answered for side in sides] == [1, 1]
