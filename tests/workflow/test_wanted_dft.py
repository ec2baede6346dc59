"""What was wanted of transforms, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

from workflow.output.wanted_dft import judged_dft


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
