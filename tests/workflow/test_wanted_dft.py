"""What was wanted of transforms, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from workflow.output.wanted_dft import judged_dft, judged_dft_errors


def row(implementation: str, length: int, **other: Any) -> dict[str, Any]:
    return {
        "implementation": implementation, "n": float(length), "limit_fraction": 0.6,
        "precision": "3xfp16" if implementation == "argand" else "fp32", "verified": "True",
        "time_us_p50": 100.0, "algorithm": "hankel",
    } | other  # fmt: skip


def test_a_share_of_the_copy_rate() -> None:
    (found, _) = judged_dft([row("argand", 251), row("cufft", 251)])
    assert (found["wanted"], found["measured"], found["met"]) == ("0.57 of copy", "0.600", "yes")
    (found,) = judged_dft([row("argand", 251, limit_fraction=0.569)])
    assert found["met"] == "no"


def test_times_cufft() -> None:
    theirs = row("cufft", 1009, time_us_p50=149.0, limit_fraction=0.2)
    (found,) = judged_dft([row("argand", 1009), theirs])
    assert (found["wanted"], found["measured"], found["met"]) == ("1.5 x cuFFT", "1.49 x", "no")
    assert found["a copy"] == "5 x"
    (found,) = judged_dft([row("argand", 1009), theirs | {"time_us_p50": 150.0}])
    assert found["met"] == "yes"
    ours = row("argand", 16_384, algorithm="cufft: faster")
    (found,) = judged_dft([ours, row("cufft", 16_384, time_us_p50=99.5)])
    assert (found["by"], found["met"]) == ("cuFFT", "yes")


def test_more_than_a_copy_has() -> None:
    """Four times what has 0.3 of the copy rate is more than a copy's."""
    theirs = row("cufft", 131, time_us_p50=200.0, limit_fraction=0.3)
    (found,) = judged_dft([row("argand", 131), theirs])
    assert (found["a copy"], found["met"]) == ("3.33 x", "no copy does")


def test_what_is_not_there_is_not_judged() -> None:
    assert judged_dft([row("argand", 131)]) == []
    assert judged_dft([row("argand", 251, verified="False")]) == []
    assert judged_dft([row("argand", 777), row("cufft", 777)]) == []
    assert judged_dft([row("cufft", 251)]) == []


def test_errors_at_composite_lengths_and_anywhere() -> None:
    rows = [
        row("argand", 64, rel_frobenius=2.1e-7),
        row("cufft", 64, rel_frobenius=1e-7),
        row("argand", 67, rel_frobenius=1.1e-6),
        row("cufft", 67, rel_frobenius=1e-7),
    ]
    composite, largest = judged_dft_errors(rows)
    assert (composite["lengths"], composite["limit"], composite["met"]) == ("64", "2e-07", "no")
    assert (largest["lengths"], largest["met"]) == ("all, most at 67", "no")
    # Where cuFFT itself runs its error is compared with its own.
    rows[0]["algorithm"] = "64, cufft: faster"
    assert [line["by"] for line in judged_dft_errors(rows)] == ["cuFFT", "ours"]
    rows[0]["rel_frobenius"], rows[2]["rel_frobenius"] = 2e-7, 1e-6
    assert [line["met"] for line in judged_dft_errors(rows)] == ["yes", "yes"]
    assert judged_dft_errors([]) == []


@pytest.mark.parametrize(("power", "met"), [(0.9, "yes"), (1.1, "no")])
def test_growth_of_errors(power: float, met: str) -> None:
    rows = [
        row("argand", 1 << i, rel_frobenius=1e-8 * i**power, algorithm=f"{1 << i}, cufft: faster")
        for i in range(3, 9)
    ]
    line = judged_dft_errors(rows)[-1]
    assert (line["lengths"], line["met"]) == ("cufft, 6 lengths", met)
    assert line["by"] == "cuFFT"
    assert line["measured"] == f"(log n)^{power:.2f}"
