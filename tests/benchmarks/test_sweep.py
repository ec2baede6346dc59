"""Sizes that a seed draws, and what is said of their times."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.sweep import DRAWN, ratios, summary


@pytest.mark.parametrize("what", DRAWN)
def test_a_seed_draws_the_same_sizes(what: str) -> None:
    first, again, other = (DRAWN[what](np.random.default_rng(seed), 30) for seed in (1, 1, 2))
    assert first == again != other
    assert sum(map(len, first.values())) == 30
    for operation, shapes in first.items():
        for shape in shapes:
            sizes = list(map(int, shape.split("x")))
            assert min(sizes) >= 1
            assert len(sizes) in ((3, 4) if operation == "gemm" else (2,))
            if what == "small":
                assert max(sizes) <= 512


def row(case: str, speedup: str, **changed: str) -> dict[str, str]:
    return {
        "workload": case, "implementation": "argand", "precision": "tf32", "verified": "True",
        "speedup": speedup, "time_us_p50": "2.5", "input": "complex64",
    } | changed  # fmt: skip


def test_the_summary_counts_what_is_slower() -> None:
    rows = [row("a", "0.5"), row("b", "2.0"), row("c", "0.99"), row("d", ""),
            row("e", "0.1", implementation="torch"), row("f", "0.1", input="packed"),
            row("g", "0.1", verified="False")]  # fmt: skip
    assert [one.case for one in ratios(rows)] == ["a", "b", "c"]
    text = summary(rows)
    assert "   3 cases,   1 slower than 0.97 of the best peer; worst 0.50" in text[0]
    assert "geometric mean 1.00" in text[0]
    assert text[1].split()[:3] == ["0.50", "tf32", "a"]
    assert text[-1].startswith("1 results of ours did not verify")
