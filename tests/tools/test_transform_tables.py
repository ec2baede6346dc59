"""Transforms beside cuFFT: what the tables have of a benchmark's rows."""

from __future__ import annotations

from typing import Any

from tools.docs.transform_tables import beside_cufft, earned, three_kernel_beside_cufft


def row(implementation: str, length: int, **other: Any) -> dict[str, Any]:
    return {
        "implementation": implementation, "n": float(length), "limit_fraction": 0.6,
        "precision": "3xfp16" if implementation == "argand" else "fp32", "verified": "True",
        "time_us_p50": 100.0, "algorithm": "hankel",
    } | other  # fmt: skip


def test_ours_beside_cufft() -> None:
    ours = row("argand", 254, rel_frobenius=2e-7, bound=1e-5, algorithm="butterfly: some")
    theirs = row("cufft", 254, rel_frobenius=1e-7, time_us_p50=250.0)
    (line,) = beside_cufft([ours, theirs, row("argand", 255)])
    assert (line["length"], line["by"], line["x cuFFT"]) == ("254", "ours", "2.50")
    assert (line["what ran"], line["bound"]) == ("butterfly: some", "1.00e-05")
    (line,) = beside_cufft([ours | {"algorithm": "254, cufft: faster"}, theirs])
    assert line["by"] == "cuFFT"


def test_three_kernel_beside_cufft() -> None:
    """The fastest of ours, and whose the choice takes; not where there is another kind of ours."""
    rows = [
        {"length": "14848", "plan": plan, "time_us": time_us, "error": "1e-7"}
        for plan, time_us in (
            ("cufft", "500"),
            ("ThreeKernelPlan(1)", "900"),
            ("ThreeKernelPlan(2)", "800"),
        )
    ]
    others = [row | {"length": "13560"} for row in rows] + [
        rows[0] | {"length": "13560", "plan": "TwoFactorPlan(1)"}
    ]
    (found,) = three_kernel_beside_cufft([*rows, *others])
    assert (found["length"], found["factors"], found["by"]) == ("14848", "2^9 x 29", "two passes")
    assert (found["ours (µs)"], found["ours x cuFFT"]) == ("800", "0.62")
    (found,) = three_kernel_beside_cufft([row | {"length": "79507"} for row in rows])
    assert (found["factors"], found["by"]) == ("43^3", "ours")
    assert three_kernel_beside_cufft(rows[1:]) == []


def test_what_a_kind_of_plan_earns() -> None:
    """Gains are over the fastest rival, at lengths where the kind is chosen and has one."""
    rows = [
        {"length": length, "plan": plan, "time_us": time_us}
        for length, plan, time_us in (
            ("1009", "cufft", "400"), ("1009", "ButterflyPlan(1)", "200"),
            ("1009", "ButterflyPlan(2)", "100"), ("1511", "cufft", "100"),
            ("1511", "ButterflyPlan(1)", "100"), ("1511", "ThreeKernelPlan(1)", "300"),
            ("2039", "ButterflyPlan(1)", "100"), ("1024", "cufft", "100"),
        )
    ]  # fmt: skip
    (line,) = earned(rows)
    assert (line["plan"], line["lengths"], line["earns"]) == ("butterfly", "2", "2.00")
    assert (line["least"], line["at"], line["over"]) == ("1.00", "1511", "cuFFT 2")
