"""What was wanted of softmax, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

from workflow.output.wanted_softmax import judged_softmax


def row(implementation: str, columns: int, **other: Any) -> dict[str, Any]:
    return {
        "implementation": implementation, "input": "fp32", "rows": 1000.0,
        "columns": float(columns), "limit_fraction": 0.95, "verified": "True",
        "time_us_p50": 100.0,
    } | other  # fmt: skip


def test_a_share_of_the_copy_rate() -> None:
    (found,) = judged_softmax([row("argand", 4096)])
    assert (found["wanted"], found["measured"], found["met"]) == ("0.93 of copy", "0.950", "yes")
    (found,) = judged_softmax([row("argand", 4096, limit_fraction=0.9299)])
    assert found["met"] == "no"
    (found,) = judged_softmax([row("argand", 1 << 20, limit_fraction=0.821)])
    assert (found["wanted"], found["met"]) == ("0.82 of copy", "yes")


def test_torch_at_the_same_size() -> None:
    ours, theirs = row("argand", 64), row("torch", 64, time_us_p50=99.0)
    (found,) = judged_softmax([ours, theirs, row("torch", 32, time_us_p50=900.0)])
    assert (found["measured"], found["met"]) == ("0.99 x", "no")
    (found,) = judged_softmax([ours, theirs | {"time_us_p50": 100.0}])
    assert found["met"] == "yes"


def test_few_long_rows_have_a_want_of_their_own() -> None:
    few = {"rows": 64.0}
    ours, theirs = row("argand", 1 << 20, **few), row("torch", 1 << 20, **few, time_us_p50=290.0)
    (found,) = judged_softmax([ours, theirs])
    assert (found["wanted"], found["measured"], found["met"]) == ("3 x torch", "2.9 x", "no")


def test_rows_that_do_not_count() -> None:
    assert judged_softmax([row("argand", 4096, verified="False")]) == []
    assert judged_softmax([row("triton", 4096)]) == []
    assert judged_softmax([row("argand", 100_000_000)]) == []
