"""Measured choices on a GPU: what is kept is what later calls take, and it is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import gemm, pack, pairs, to_pairs, tune
from argand.gemm import tuned
from argand.gemm.candidates import candidates, candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.tune import Measured, main
from argand.runtime.plans import tuned_plans

from tests.kernels.gemm.product_cases import OPS, check, normal, stored
from tests.kernels.precisions import SINGLE_HALF, TENSOR

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table of this test alone; compiled kernels stay where they are."""
    monkeypatch.setattr(tuned_plans, "cache_folder", lambda: tmp_path)
    forget_choices()
    yield
    forget_choices()


def forget_choices() -> None:
    """Plan every product again: what was prepared with another table is not taken."""
    with tuned.trial(None):
        pass


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[GemmChoice | None]:
    """The table's answers to the products that are planned from now on."""
    found: list[GemmChoice | None] = []
    lookup = tuned.lookup

    def noted(*question: Any) -> GemmChoice | None:
        found.append(lookup(*question))
        return found[-1]

    monkeypatch.setattr(tuned, "lookup", noted)
    return found


def takes_the_fastest(
    answers: list[GemmChoice | None], found: Measured, a: Any, b: Any, **how: Any
) -> bool:
    """Whether a product takes the fastest plan that `tune` found."""
    answers.clear()
    gemm(a, b, **how)
    return answers == [found[0][0]]


@pytest.mark.parametrize("precision", TENSOR)
def test_the_fastest_way_is_kept_and_taken(
    cp: Any, rng: np.random.Generator, precision: str, answers: list[GemmChoice | None]
) -> None:
    a, b = normal(rng, 128, 64), normal(rng, 64, 128)
    gemm(cp.asarray(a), cp.asarray(b), precision=precision)
    assert answers.pop() is None  # planned by the estimate
    found = tune((128, 64), (64, 128), precision=precision)
    times = [time for _, time in found]
    assert times == sorted(times)
    assert times[0] > 0
    answers.clear()
    check(cp, a, b, precision=precision)
    assert answers == [found[0][0]]
    # The neighbourhood, in the same steps of a quarter of an octave.
    check(cp, normal(rng, 120, 66), normal(rng, 66, 124), precision=precision)
    assert answers == [found[0][0]] * 2
    check(cp, normal(rng, 60, 66), normal(rng, 66, 124), precision=precision)
    assert answers[2] is None


@pytest.mark.parametrize("precision", TENSOR)
def test_every_candidate_is_timed(cp: Any, precision: str) -> None:
    from argand.device import gpu

    with tuned.trial(None) as trial:
        gemm(cp.ones((2, 70, 600), cp.complex64), cp.ones((600, 90), cp.complex64),
             precision=precision)  # fmt: skip
    assert trial.question is not None
    row, sizes, a, b, *_ = question = trial.question
    assert (row.name, sizes.batch, sizes.m, sizes.n, sizes.k) == (precision, 2, 70, 90, 600)
    assert (a.batched, b.batched) == (True, False)
    card = gpu(cp.cuda.Device().id)
    posed = question, card.require_arch(), card.sm_count
    every = [*candidates(*posed), *candidates_in_tf32(*posed)]
    found = tune((2, 70, 600), (600, 90), precision=precision)
    assert {plan for plan, _ in found} == set(every)
    assert len(found) == len(every)


@pytest.mark.parametrize("precision", TENSOR)
def test_each_way_is_right_when_the_table_says_it(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Parts of k too, for a neighbour with another k."""
    for choice, _ in tune((40, 2048), (2048, 48), precision=precision):
        with tuned.trial(choice):
            check(cp, normal(rng, 40, 2000), normal(rng, 2000, 48), precision=precision)


@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_have_entries_of_their_own(
    cp: Any, rng: np.random.Generator, op_a: str, op_b: str, answers: list[GemmChoice | None]
) -> None:
    a, b = stored(normal(rng, 64, 96), op_a), stored(normal(rng, 96, 128), op_b)
    found = tune(a.shape, b.shape, op_a=op_a, op_b=op_b, precision="3xfp16")
    answers.clear()
    check(cp, a, b, op_a=op_a, op_b=op_b, precision="3xfp16")
    assert answers == [found[0][0]]


@pytest.mark.parametrize("precision", SINGLE_HALF)
@pytest.mark.parametrize("output", ["complex64", "complex-half"])
def test_pairs(
    cp: Any, rng: np.random.Generator, precision: str, output: str,
    answers: list[GemmChoice | None],
) -> None:  # fmt: skip
    found = tune((64, 96), (96, 128), precision=precision, a_format=precision, b_format=precision,
                 output=output)  # fmt: skip
    a, b = (
        pairs(cp.asarray(to_pairs(normal(rng, *shape), precision).array), precision)
        for shape in ((64, 96), (96, 128))
    )
    assert takes_the_fastest(answers, found, a, b, precision=precision, output=output)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("side", ["a", "b"])
def test_packed_operands(
    cp: Any, rng: np.random.Generator, precision: str, side: str,
    answers: list[GemmChoice | None],
) -> None:  # fmt: skip
    found = tune((64, 96), (96, 128), precision=precision, **{f"{side}_format": "packed"})
    a, b = cp.asarray(normal(rng, 64, 96)), cp.asarray(normal(rng, 96, 128))
    if side == "a":
        a = pack(a, precision, side="a")
    else:
        b = pack(b, precision, side="b")
    assert takes_the_fastest(answers, found, a, b, precision=precision)


def test_a_second_measurement_replaces_the_first() -> None:
    for _ in range(2):
        found = tune((64, 64), (64, 64), precision="tf32")
        assert list(tuned.TABLE.read(0).values()) == [found[0][0]]


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    from argand.device import gpu

    assert main(["64x64x64", "2x64x64x64", "--precision", "tf32,bf16"]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith(f"{gpu(0).name}, {gpu(0).driver}, kernels ")
    assert len(lines) == 4 + 4
    assert "[4/4] 2x64x64x64 bf16 ..." in printed.err
    assert tuned.TABLE.path(0).is_file()
