"""What was wanted of transforms, held against rows of a benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from workflow.output.wanted_dft import (
    beside_cufft,
    judged_dft,
    judged_dft_errors,
    passes_beside_cufft,
)


def row(implementation: str, length: int, **other: Any) -> dict[str, Any]:
    return {
        "implementation": implementation, "n": float(length), "limit_fraction": 0.6,
        "precision": "3xfp16" if implementation == "argand" else "fp32", "verified": "True",
        "time_us_p50": 100.0, "algorithm": "hankel",
    } | other  # fmt: skip


def test_a_share_of_the_copy_rate() -> None:
    (found, _) = judged_dft([row("argand", 251), row("cufft", 251)])
    assert (found["wanted"], found["measured"], found["met"]) == ("0.57 of copy", "0.600", "yes")
    assert found["wanted of copy"] == "0.570"
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
    assert found["wanted of copy"] == "1.200"


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
    rows[0]["rel_frobenius"], rows[2]["rel_frobenius"] = 2e-7, 1e-6
    assert [line["met"] for line in judged_dft_errors(rows)] == ["yes", "yes"]
    assert judged_dft_errors([]) == []


def test_cufft_is_not_compared_with_itself() -> None:
    rows = [
        row("argand", 64, rel_frobenius=1e-7, algorithm="cufft: faster at some, and in fp32"),
        row("argand", 128, rel_frobenius=2e-7, algorithm="8 x 16, cufft: faster"),
        row("argand", 254, rel_frobenius=3e-7, algorithm="butterfly: bluestein(8 x 8 x 8)"),
        *(row("cufft", n, rel_frobenius=1e-7) for n in (64, 128, 254)),
    ]
    ours, theirs, largest = judged_dft_errors(rows)
    assert (ours["lengths"], ours["by"], ours["met"]) == ("254", "ours", "no")
    assert (theirs["lengths"], theirs["by"]) == ("2 more, most at 128", "cuFFT")
    assert theirs["met"] == "no comparison"
    assert largest["by"] == "ours"


def test_ours_beside_cufft() -> None:
    ours = row("argand", 254, rel_frobenius=2e-7, bound=1e-5, algorithm="butterfly: some")
    theirs = row("cufft", 254, rel_frobenius=1e-7, time_us_p50=250.0)
    (line,) = beside_cufft([ours, theirs, row("argand", 255)])
    assert (line["length"], line["by"], line["x cuFFT"]) == ("254", "ours", "2.50")
    assert (line["what ran"], line["bound"]) == ("butterfly: some", "1.00e-05")


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


def test_passes_beside_cufft() -> None:
    """The fastest of ours, and whose the choice takes; not where there is another kind of ours."""
    rows = [
        {"length": "14848", "plan": plan, "time_us": time_us, "error": "1e-7"}
        for plan, time_us in (("cufft", "500"), ("PassesPlan(1)", "900"), ("PassesPlan(2)", "800"))
    ]
    others = [row | {"length": "13560"} for row in rows] + [
        rows[0] | {"length": "13560", "plan": "ProductPlan(1)"}
    ]
    (found,) = passes_beside_cufft([*rows, *others])
    assert (found["length"], found["factors"], found["by"]) == ("14848", "2^9 x 29", "cuFFT")
    assert (found["ours (µs)"], found["ours x cuFFT"]) == ("800", "0.62")
    (found,) = passes_beside_cufft([row | {"length": "49664"} for row in rows])
    assert (found["factors"], found["by"]) == ("2^9 x 97", "ours")
    assert passes_beside_cufft(rows[1:]) == []
