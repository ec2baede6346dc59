"""Small products one after the other, as a program makes them that does nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workflow.tables.readable import number

Row = Mapping[str, Any]

PEERS = ("cublas", "torch")
CLASSES = (("tf32", "tf32"), ("3xtf32", "fp32"), ("3xfp16", "fp32"))
"""Our precisions and the peers' of the same class of errors."""
SIDES = (256, 512, 1024, 2048)


def back_to_back(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return a line for each size and precision that all were measured at: microseconds a call."""
    found = []
    for side in SIDES:
        for ours, theirs in CLASSES:
            times = [
                _a_call(rows, side, "argand", ours),
                *(_a_call(rows, side, peer, theirs) for peer in PEERS),
            ]
            if None in times:
                continue
            line = {"shape": f"{side}x{side}x{side}", "precision": ours}
            for name, time in zip(("argand", *PEERS), times, strict=True):
                assert time is not None
                line[f"{name} (µs)"] = number(time)
            fastest = min(time for time in times[1:] if time is not None)
            assert times[0] is not None
            line["times the faster peer"] = f"{fastest / times[0]:.3g}"
            found.append(line)
    return found


def _a_call(rows: Sequence[Row], side: int, implementation: str, precision: str) -> float | None:
    """Return the time from one call to the next.

    For older rows it is the longer of the card's time and the host's.
    """
    for row in rows:
        same = (row["implementation"], row["precision"]) == (implementation, precision)
        shape = [row[name] for name in ("batch", "m", "n", "k")] == [1, side, side, side]
        plain = row["input"] == row["output"] == "complex64" and row["verified"] == "True"
        if same and shape and plain and row["host_us"]:
            return float(row["back_to_back_us"] or max(row["time_us_p50"], row["host_us"]))
    return None
