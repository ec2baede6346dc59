"""What was wanted of the GPU's gates and circuits, held against what a benchmark measured.

A gate's time and error at the worst of its placements, a circuit's time against cuStateVec's at its
best width in the same run. Nothing here decides whether a result is right; the rows are verified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow.output.readable import number
from workflow.output.recorded import Row, timed_rows


@dataclass(frozen=True)
class Want:
    """Gates of a width on 28 qubits: at most so many milliseconds, and so large an error."""

    width: int
    most_ms: float
    most_error: float
    aim_ms: float | None = None


_GATE, _CIRCUIT = "gate-28q-", "circuit-28q-"
WANTS: tuple[Want, ...] = (
    *(Want(width, 1.16, 5e-7) for width in range(1, 6)),
    Want(6, 1.18, 5e-7),
    Want(7, 1.60, 1e-6, aim_ms=1.3),
)
_LEAST_RATIO, _AIM_RATIO = 1.6, 2.0


def judged_gates(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Two lines for each width and one for each circuit that the rows tell about."""
    found = []
    for want in WANTS:
        named = f"{_GATE}{want.width}-"
        ours = [row for row in _ours(rows) if row["workload"].startswith(named)]
        if not ours:
            continue
        what = f"{want.width} qubit{'s'[: want.width - 1]}, worst of {len(ours)} placements"
        slowest = max(row["time_us_p50"] for row in ours) / 1e3
        worst = max(row["rel_frobenius"] for row in ours)
        aim = "" if want.aim_ms is None else f"{want.aim_ms:g} ms"
        found += [
            _line(what, f"at most {want.most_ms:g} ms", aim, f"{slowest:.3f} ms",
                  slowest <= want.most_ms),
            _line(what, f"error at most {number(want.most_error, scientific=True)}", "",
                  number(worst, scientific=True), worst <= want.most_error),
        ]  # fmt: skip
    for row in _ours(rows):
        if not row["workload"].startswith(_CIRCUIT):
            continue
        theirs = timed_rows(rows, implementation="custatevec", workload=row["workload"])
        if theirs:
            best = min(theirs, key=lambda one: float(one["time_us_p50"]))
            ratio = best["time_us_p50"] / row["time_us_p50"]
            found.append(
                _line(f"{row['workload'].removeprefix(_CIRCUIT)}, {row['algorithm']}; "
                      f"cuStateVec {best['algorithm']}",
                      f"{_LEAST_RATIO:g} x cuStateVec", f"{_AIM_RATIO:g} x", f"{ratio:.2f} x",
                      ratio >= _LEAST_RATIO)
            )  # fmt: skip
    return found


def _ours(rows: Sequence[Row]) -> list[Row]:
    return timed_rows(rows, implementation="argand", precision="3xfp16")


def _line(what: str, wanted: str, aim: str, measured: str, met: bool) -> dict[str, str]:
    return {
        "what": what, "wanted": wanted, "aim": aim, "measured": measured,
        "met": "yes" if met else "no",
    }  # fmt: skip
