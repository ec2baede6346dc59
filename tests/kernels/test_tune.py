"""Measuring the fastest plan, and the command that does it, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import argand
import pytest
from argand import DeviceError
from argand.__main__ import main as command
from argand.gemm.choice import GemmChoice
from argand.gemm.tune import main, tune
from argand.runtime.plans.tuning import ranked

from tests.kernels.gemm.tuning_cases import CHOICE, card

pytestmark = pytest.mark.usefixtures("card_without_tables")


def test_plans_are_ranked_by_their_medians_and_hopeless_ones_called_once() -> None:
    plans = [GemmChoice(split_k_slices=n) for n in (1, 2, 3, 4, 5)]
    first = {1: 10.0, 2: 31.0, 3: 6.0, 4: 18.0, 5: 18.1}
    counts: dict[int, list[int]] = {}

    def times(plan: GemmChoice, count: int) -> list[float]:
        counts.setdefault(plan.split_k_slices, []).append(count)
        if count == 1:
            return [first[plan.split_k_slices]]
        return [first[plan.split_k_slices] / 2] * (count - 1) + [1000.0]

    found = ranked(plans, times)
    assert [(plan.split_k_slices, time) for plan, time in found] == [
        (3, 3.0), (1, 5.0), (4, 9.0), (5, 18.1), (2, 31.0),
    ]  # fmt: skip
    assert {n: len(each) for n, each in counts.items()} == {1: 2, 2: 1, 3: 2, 4: 2, 5: 1}


def test_tune_is_public() -> None:
    assert argand.tune is tune


@pytest.mark.parametrize(
    ("shapes", "how", "message"),
    [
        (((4, 5), (6, 7)), {"precision": "tf32"}, "inner dimensions differ"),
        (((4, 5), (5, 7)), {"precision": "fp32"}, r"must be one of \['tf32', .*got 'fp32'"),
        (((4, 5), (5, 7)), {"precision": "fp7"}, "precision must be one of"),
        (((4, 0), (0, 7)), {"precision": "tf32"}, "an empty product"),
        (((4, 5), (5, 7)), {"precision": "tf32", "a_format": "fp16"},
         r"a_format at tf32 must be one of \['complex', 'packed'\], got 'fp16'"),
        (((4, 5), (5, 7)), {"precision": "fp16", "b_format": "bf16"},
         r"b_format at fp16 must be one of \['complex', 'packed', 'fp16'\], got 'bf16'"),
        (((4, 5), (5, 7)), {"precision": "3xfp16", "output": "complex-half"}, "output at 3xfp16"),
    ],
)  # fmt: skip
def test_what_cannot_be_tuned_is_refused_before_a_gpu_is_sought(
    shapes: Any, how: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        tune(*shapes, **how)


@pytest.fixture
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argand.runtime.plans.tuning.gpus", list)


@pytest.mark.usefixtures("_no_gpu")
@pytest.mark.parametrize("measure", [
    lambda: argand.tune((4, 5), (5, 7), precision="tf32"),
    lambda: argand.tune_softmax(10, 10),
    lambda: argand.tune_dft(10, 100),
])  # fmt: skip
def test_tuning_needs_a_gpu(measure: Callable[[], object]) -> None:
    with pytest.raises(DeviceError, match="tuning needs an NVIDIA GPU"):
        measure()


@pytest.mark.usefixtures("_no_gpu")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["8x8x8"], "tuning needs an NVIDIA GPU"),
        (["8x8x8", "--precision", "tf32,fp64"], "got 'fp64'"),
        (["8x8x8", "--output", "complex-half"], "output at tf32 must be one of"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""


def test_the_command_measures_each_product_at_each_precision(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = sys.modules["argand.gemm.tune"]
    asked = []

    def measured(*shapes: tuple[int, ...], **how: Any) -> list[tuple[GemmChoice, float]]:
        asked.append((*shapes, how["precision"], how["op_a"], how["op_b"]))
        return [(CHOICE, 20.0), (GemmChoice(), 30.0)]

    monkeypatch.setattr("argand.runtime.plans.tuning.gpus", lambda: [card()])
    monkeypatch.setattr(module, "tune", measured)
    monkeypatch.setattr(module, "_heading", lambda: ["the card", ""])
    assert main(["100x200x300", "7x10x20x30", "--precision", "tf32,bf16", "--op-a", "C"]) == 0
    assert asked == [
        ((300, 100), (300, 200), "tf32", "C", "N"), ((300, 100), (300, 200), "bf16", "C", "N"),
        ((7, 30, 10), (7, 30, 20), "tf32", "C", "N"), ((7, 30, 10), (7, 30, 20), "bf16", "C", "N"),
    ]  # fmt: skip
    printed = capsys.readouterr()
    assert printed.out.splitlines()[:3] == [
        "the card", "",
        # 8 x 100 x 200 x 300 flops in 20 us.
        f"| 100x200x300 | tf32 | {CHOICE.name} | 20.0 | 2.4 | 30.0 | 2 |",
    ]  # fmt: skip
    assert len(printed.out.splitlines()) == 6
    assert "[4/4] 7x10x20x30 bf16" in printed.err


@pytest.mark.parametrize("text", ["8x8", "8x8x8x8x8", "8x8x0", "8x-8x8", "axbxc", ""])
def test_the_command_refuses_other_sizes(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([text])
    assert "must be MxNxK or BATCHxMxNxK" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("what", "sizes"), [("gemm", "BATCH"), ("softmax", "ROWSxCOLUMNS"), ("dft", "ROWSxLENGTH")]
)
def test_the_command_runs_as_a_module_without_a_warning(what: str, sizes: str) -> None:
    """Which Python gives where a package imports a module that is then run."""
    found = subprocess.run(
        [sys.executable, "-W", "error", "-m", "argand", "tune", what, "--help"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert sizes in found.stdout
    assert found.stderr == ""


@pytest.mark.parametrize("given", [[], ["tune"], ["tune", "fft", "8"], ["gemm", "8x8x8"]])
def test_the_command_names_what_can_be_tuned(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(given) == 2
    said = capsys.readouterr().err
    assert "tune gemm|softmax|dft|gates" in said
    if given[:1] == ["tune"]:
        assert "argand tune takes one of gemm, softmax, dft, gates first" in said
    elif given:
        assert f"there is no command {' '.join(given)!r}" in said


@pytest.mark.usefixtures("_no_gpu")
@pytest.mark.parametrize("words", [["gates", "20"], ["dft", "10x100"]])
def test_commands_that_need_a_gpu_say_so(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["tune", *words]) == 2
    assert "tuning needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [(["gates", "20", "--precision", "fp7"], "precision must be one of"),
     (["dft", "3"], "must be ROWSxLENGTH")],
)  # fmt: skip
def test_wrong_words_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command(["tune", *words])
    assert message in capsys.readouterr().err
