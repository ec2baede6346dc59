"""Transforms beside cuFFT: what the tables have of a benchmark's rows."""

from __future__ import annotations

from tools.docs.transform_tables import three_kernel_beside_cufft


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
