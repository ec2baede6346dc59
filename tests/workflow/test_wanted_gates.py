"""What was wanted of gates: the worst placement counts, and cuStateVec's best width."""

import pytest

from workflow.output.wanted_gates import judged_gates


def row(workload, implementation="argand", time=1000.0, error=1e-7, **more):
    return {
        "workload": workload, "implementation": implementation,
        "precision": "3xfp16" if implementation == "argand" else "fp32", "time_us_p50": time,
        "rel_frobenius": error, "verified": "True", "algorithm": f"in {time}", **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("width", "time", "error", "met"),
    [
        (1, 1160, 5e-7, ["yes", "yes"]), (5, 1161, 6e-7, ["no", "no"]),
        (6, 1180, 5e-7, ["yes", "yes"]), (6, 1181, 4e-7, ["no", "yes"]),
        (7, 1600, 1.1e-6, ["yes", "no"]), (7, 1601, 1e-6, ["no", "yes"]),
    ],
)  # fmt: skip
def test_the_worst_placement_counts(width, time, error, met):
    rows = [
        row(f"gate-28q-{width}-low", time=time - 50), row(f"gate-28q-{width}-mid", time=time),
        row(f"gate-28q-{width}-high", error=error),
        row(f"gate-28q-{width}-spread", time=9e9, verified="False"),
        row(f"gate-28q-{width}-low", time=9e9, precision="fp32"),
        row(f"gate-20q-{width}-low", time=9e9),
        row(f"gate-28q-{width}-low", "custatevec", time=9e9),
    ]  # fmt: skip
    lines = judged_gates(rows)
    assert [line["met"] for line in lines] == met
    assert all("worst of 3 placements" in line["what"] for line in lines)
    assert lines[0]["measured"] == f"{time / 1e3:.3f} ms"


@pytest.mark.parametrize(("best", "met"), [(1600.0, "yes"), (1599.0, "no")])
def test_circuits_are_held_against_the_best_width(best, met):
    name = "circuit-28q-qft"
    rows = [
        row(name), row(name, "custatevec", 3000.0), row(name, "custatevec", best),
        row(name, "custatevec", 1.0, verified="False"), row(name, "aer", 1.0),
        row("circuit-28q-random-400"), row("circuit-28q-random-400", "custatevec", None),
    ]  # fmt: skip
    (line,) = judged_gates(rows)
    assert line["met"] == met
    assert line["measured"] == f"{best / 1e3:.2f} x"
    assert f"cuStateVec in {best}" in line["what"]
