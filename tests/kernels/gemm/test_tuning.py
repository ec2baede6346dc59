"""Tables of measured choices, and the ranking that fills them, without a GPU."""

from __future__ import annotations

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argand import PRECISIONS
from argand.gemm import tuned
from argand.gemm.candidates import candidates, candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm90.plan import WgmmaPlan
from argand.runtime.plans import tuned_plans

from tests.covers import covered, fields_of
from tests.kernels.gemm.tuning_cases import CHOICE, DEVICE, HOPPER, SIZES, TF32, A, B, card

pytestmark = pytest.mark.usefixtures("card_without_tables")


def kept(choice: GemmChoice = CHOICE, sizes: GemmSizes = SIZES) -> Path:
    tuned.TABLE.keep(DEVICE, {tuned.key(Question(TF32, sizes, A, B)): choice})
    return tuned.TABLE.path(DEVICE)


def looked_up(sizes: GemmSizes = SIZES) -> GemmChoice | None:
    return tuned.lookup(Question(TF32, sizes, A, B), DEVICE)


def test_the_way_that_these_tests_keep_is_a_candidate() -> None:
    assert CHOICE in candidates(Question(TF32, SIZES, A, B), HOPPER, 132)


def test_a_trial_is_of_its_thread() -> None:
    """Calls of others neither take its choice nor change what it was asked."""
    with ThreadPoolExecutor(1) as others, tuned.trial(CHOICE) as trial:
        assert others.submit(looked_up).result() is None
        assert trial.question is None
        assert looked_up() == CHOICE
        assert trial.question == Question(TF32, SIZES, A, B)


def test_without_a_table_there_is_no_answer() -> None:
    assert looked_up() is None
    assert not tuned.TABLE.path(DEVICE).exists()


@pytest.mark.parametrize("field", ["batch", "m", "n", "k"])
def test_sizes_of_a_quarter_of_an_octave_share_an_entry(field: str) -> None:
    """Steps are a quarter of an octave, a power of two in the middle of its own: 2^(1/8) = 1.09."""

    def entry(size: float) -> str:
        return tuned.key(Question(TF32, replace(SIZES, **{field: round(size)}), A, B))

    assert entry(4096 * 0.92) == entry(4096) == entry(4096 * 1.08)
    quarters = [entry(4096 * 2 ** (step / 4)) for step in range(-8, 9)]
    assert len(set(quarters)) == len(quarters)
    assert entry(4096 * 0.91) == quarters[7]
    assert entry(4096 * 1.10) == quarters[9]
    assert len({entry(size) for size in (1, 2, 3, 4)}) == 4


def test_everything_that_a_choice_depends_on_is_in_the_key() -> None:
    traits = [
        replace(A, **{name: not getattr(A, name)})
        for name in ("copyable", "k_major", "half", "packed", "batched", "conjugated")
    ]
    keys = [
        tuned.key(Question(TF32, SIZES, A, A)),
        tuned.key(Question(PRECISIONS["3xtf32"], SIZES, A, A)),
    ]
    keys.append(tuned.key(Question(TF32, replace(SIZES, half_output=True), A, A)))
    keys += [tuned.key(Question(TF32, SIZES, other, A)) for other in traits]
    keys += [tuned.key(Question(TF32, SIZES, A, other)) for other in traits]
    keys += [tuned.key(Question(TF32, GemmSizes(*sizes), A, A))
             for sizes in ((2, 8, 8, 8), (8, 2, 8, 8), (8, 8, 2, 8), (8, 8, 8, 2))]  # fmt: skip
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "3xfp16", "fp16", "bf16"])
def test_every_way_comes_back_from_the_file_as_it_was(precision: str) -> None:
    row = PRECISIONS[precision]
    sizes = GemmSizes(1, 16, 16, 100_000)
    question = Question(row, sizes, A, B)
    every = [*candidates(question, HOPPER, 132), *candidates_in_tf32(question, HOPPER, 132)]
    for choice in covered(
        every, lambda one: fields_of(one) | fields_of(one.wgmma or {}), strength=1
    ):
        tuned.TABLE.keep(DEVICE, {tuned.key(Question(row, sizes, A, B)): choice})
        assert tuned.lookup(Question(row, sizes, A, B), DEVICE) == choice


@pytest.mark.parametrize("half_output", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_pairs_and_packed_operands_come_back_too(half_output: bool, packed: bool) -> None:
    row, sizes = PRECISIONS["fp16"], replace(SIZES, half_output=half_output)
    a, b = (OperandTraits(packed=packed, half=not packed), OperandTraits(half=not packed))
    for choice in candidates(Question(row, sizes, a, b), HOPPER, 132):
        tuned.TABLE.keep(DEVICE, {tuned.key(Question(row, sizes, a, b)): choice})
        assert tuned.lookup(Question(row, sizes, a, b), DEVICE) == choice


def test_entries_are_added_and_replaced() -> None:
    small = GemmSizes(1, 64, 64, 64)
    before = tuned.TABLE.generation
    kept()
    kept(GemmChoice(), small)
    assert (looked_up(), looked_up(small)) == (CHOICE, GemmChoice())
    kept(GemmChoice())
    assert looked_up() == GemmChoice()
    assert tuned.TABLE.generation == before + 3


def test_neighbours_are_served_and_empty_products_are_not() -> None:
    kept(GemmChoice(), GemmSizes(1, 1, 4096, 1))
    assert looked_up(GemmSizes(1, 1, 4000, 1)) == GemmChoice()
    assert looked_up(GemmSizes(1, 1, 4096, 0)) is None
    assert looked_up(GemmSizes(1, 0, 4096, 1)) is None


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize(
    ("precision", "columns", "in_tf32"),
    [("3xtf32", 64, False), ("3xfp16", 128, False), ("3xfp16", 64, True)],
)
def test_a_k_that_is_too_long_for_a_tuned_plan_is_planned_by_estimates(
    precision: str, columns: int, in_tf32: bool, slices: int
) -> None:
    """Warpgroups that share k spill nothing: their accumulators would take too many additions."""
    longest, sizes = 3072 * slices, GemmSizes(1, 64, 64, 2900 * slices)
    plan = WgmmaPlan(1, columns, 16, 6, k_major=True, k_warpgroups=2)
    choice = GemmChoice(plan, split_k_slices=slices, in_tf32=in_tf32)
    entry = tuned.key(Question(PRECISIONS[precision], sizes, A, B))
    tuned.TABLE.keep(DEVICE, {entry: choice})
    for k, found in ((longest, choice), (longest + slices, None)):
        question = Question(PRECISIONS[precision], replace(sizes, k=k), A, B)
        assert tuned.key(question) == entry
        assert tuned.lookup(question, DEVICE) == found


def test_what_another_process_kept_meanwhile_is_not_lost(tmp_path: Path) -> None:
    path = kept()
    assert looked_up() == CHOICE
    beside = path.read_text()
    small = GemmSizes(1, 64, 64, 64)
    kept(GemmChoice(), small)
    path.write_text(beside)  # as another process that has not seen this one's entry would write it
    kept(GemmChoice(), GemmSizes(2, 64, 64, 64))
    assert looked_up() == CHOICE
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_says_what_it_holds_for(monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept()
    found = json.loads(path.read_text())
    assert {name: found[name] for name in ("device", "driver", "kernels")} == {
        "device": "NVIDIA H200", "driver": "CUDA 13.0",
        "kernels": tuned_plans.kernel_digest("gemm"),
    }  # fmt: skip
    for other in (card(name="NVIDIA H100"), card(driver="CUDA 13.1")):
        monkeypatch.setattr(tuned_plans, "gpu", lambda index, other=other: other)
        assert tuned.TABLE.path(DEVICE) != path
        assert looked_up() is None


def test_other_kernels_have_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept()
    monkeypatch.setattr(tuned_plans, "kernel_digest", lambda operation: f"other {operation}")
    assert tuned.TABLE.path(DEVICE) != path
    assert looked_up() is None


def damaged(path: Path, damage: str) -> None:
    text = path.read_text()
    found: Any = json.loads(text)
    (name,) = found["choices"]
    if damage == "truncated":
        text = text[:-5]
    elif damage == "empty":
        text = ""
    elif damage == "bytes":
        path.write_bytes(b"\xff\xfe" + text.encode())
        return
    else:
        entry = found["choices"][name]
        change = {
            "a list": lambda: [found],
            "no choices": lambda: {k: v for k, v in found.items() if k != "choices"},
            "choices in a list": lambda: found | {"choices": [entry]},
            "another card": lambda: found | {"device": "NVIDIA H100"},
            "a key of words": lambda: found | {"choices": {"large": entry}},
            "a key of another precision": lambda: found | {
                "choices": {name.replace("tf32", "fp7"): entry}
            },
            "half a key": lambda: found | {"choices": {'["tf32", 1]': entry}},
            "no plan": lambda: found | {"choices": {name: {"swapped": False, "split_k_slices": 1}}},
            "a field too many": lambda: found | {
                "choices": {name: entry | {"wgmma": entry["wgmma"] | {"warps": 4}}}
            },
            "a plan that is not a candidate": lambda: found | {
                "choices": {name: entry | {"wgmma": entry["wgmma"] | {"stages": 9}}}
            },
            "text for a number": lambda: found | {
                "choices": {name: entry | {"wgmma": entry["wgmma"] | {"m_warpgroups": "2"}}}
            },
            "slices that none has": lambda: (
                found | {"choices": {name: entry | {"split_k_slices": 265}}}
            ),
        }[damage]  # fmt: skip
        text = json.dumps(change())
    path.write_text(text)


@pytest.mark.parametrize(
    "damage",
    [
        "truncated", "empty", "bytes", "a list", "no choices", "choices in a list", "another card",
        "a key of words", "a key of another precision", "half a key", "no plan", "a field too many",
        "a plan that is not a candidate", "text for a number", "slices that none has",
    ],
)  # fmt: skip
def test_a_damaged_table_is_named_once_and_passed_over(damage: str) -> None:
    path = kept()
    damaged(path, damage)
    tuned.TABLE.forget()  # as in a new process
    with pytest.warns(RuntimeWarning, match="damaged") as caught:
        assert looked_up() is None
    assert str(path) in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert looked_up() is None


@pytest.mark.parametrize("how", ["everybody", "link"])
def test_a_table_that_others_may_have_written_is_passed_over(tmp_path: Path, how: str) -> None:
    path = kept()
    if how == "link":
        path.symlink_to(path.rename(tmp_path / "planted"))
    else:
        path.chmod(0o666)
    tuned.TABLE.forget()
    with pytest.warns(RuntimeWarning, match=r"not one's own \(Not(Own|Plain)Error: "):
        assert looked_up() is None


def test_a_damaged_table_is_written_anew() -> None:
    path = kept()
    path.write_text("{")
    with pytest.warns(RuntimeWarning, match="damaged"):
        kept()
    assert looked_up() == CHOICE


def test_a_table_that_cannot_be_read_is_named() -> None:
    tuned.TABLE.path(DEVICE).mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match=str(tuned.TABLE.path(DEVICE))):
        assert looked_up() is None


def test_a_failed_write_leaves_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = kept()
    before = path.read_bytes()

    def broken(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", broken)
        with pytest.raises(OSError, match="disk full"):
            kept(GemmChoice())
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before
    assert looked_up() == CHOICE


def test_a_trial_answers_for_the_table_and_notes_the_question() -> None:
    kept()
    start = tuned.TABLE.generation
    with tuned.trial(GemmChoice()) as outer:
        assert tuned.TABLE.generation != start
        assert looked_up() == GemmChoice()
        with tuned.trial(None) as inner:
            assert looked_up(GemmSizes(1, 2, 3, 4)) is None
    assert outer.question == Question(TF32, SIZES, A, B)
    assert inner.question == Question(TF32, GemmSizes(1, 2, 3, 4), A, B)
    assert looked_up() == CHOICE
    assert tuned.TABLE.generation > start + 1


def test_a_trial_ends_with_an_error() -> None:
    kept()
    with pytest.raises(ZeroDivisionError), tuned.trial(GemmChoice()):
        raise ZeroDivisionError
    assert looked_up() == CHOICE
