"""Verdicts on two rows: faster, slower, more or less accurate, or not comparable and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from workflow.compare.ratios import Ratio, time_ratio
from workflow.compare.reading import Key, Row
from workflow.implementation import OURS

NOT_COMPARABLE = "not comparable"
UNKNOWN_TIMES = "times not comparable"
_MIN_ERROR = 2.0**-53
"""Errors below the unit roundoff of fp64 may be those of the reference."""
_VERSIONS = {
    "numpy": "", "scipy": "", "driver": "", "cupy-cuda12x": "", "cupy-cuda13x": "",
    "torch": "torch", "triton": "triton",
}  # fmt: skip
"""Packages whose version changes a time or an error, and the one implementation that uses it."""
FACTORS = ("device", "size", "seed", "input", "parameters", "versions")
"""Columns that must be equal in two rows that are compared, and parameters of their workload."""


@dataclass(frozen=True)
class Margins:
    """The distances from 1 from which ratios count, and the factors that may differ.

    ``time`` and ``error`` are fractions: 0.05 for 5 %.
    """

    time: float = 0.05
    error: float = 0.25
    across: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compared:
    """One row of the comparison; ratios are after over before, below 1 is better.

    ``regression`` says whether ours became slower or less accurate, or no longer verifies, and
    ``peers`` that the peers of its job became as fast or slow: the machine may be the cause.
    """

    key: Key
    verdict: str
    reason: str = ""
    time: Ratio | None = None
    error_ratio: float | None = None
    before: Row | None = None
    after: Row | None = None
    regression: bool = False
    peers: bool = False

    @property
    def is_compared(self) -> bool:
        """Whether the rows could be compared."""
        return not self.verdict.startswith((NOT_COMPARABLE, "only in"))


def compare(
    before: Mapping[Key, Row], after: Mapping[Key, Row], margins: Margins
) -> list[Compared]:
    """Return every row of either run, in the order of the first.

    Rows that only the second has come last.
    """
    keys = dict.fromkeys(chain(before, after))
    rows = [_compared(key, before.get(key), after.get(key), margins) for key in keys]
    jobs: dict[tuple[str, str], list[Compared]] = {}
    for row in rows:
        jobs.setdefault(_job(row), []).append(row)
    peers = {job: peers_ratio(some) for job, some in jobs.items()}
    return [_beside_peers(row, peers[_job(row)], margins) for row in rows]


def _job(row: Compared) -> tuple[str, str]:
    """Return the workload and the shard of a row, which one job computed."""
    return row.key[0], row.key[3]


def _beside_peers(row: Compared, peers: float | None, margins: Margins) -> Compared:
    """Return a row of ours that says so where the ``peers`` of its job became as fast or slow.

    Nobody changed them, so the machine did that: load, clock, threads that sleep or are awake.
    """
    moved = {"slower", "faster"} & set(row.verdict.split(", "))
    if row.key[1] != OURS or row.reason or not moved or peers is None:
        return row
    most = 1 + margins.time
    if (peers > most) if "slower" in moved else (peers < 1 / most):
        reason = f"the peers of this workload took {peers:.3g} of A's time too"
        return replace(row, reason=reason, peers=True)
    return row


def _compared(key: Key, before: Row | None, after: Row | None, margins: Margins) -> Compared:
    if before is None or after is None:
        return Compared(key, f"only in {'B' if before is None else 'A'}", "", None, None, before,
                        after)  # fmt: skip
    if reason := _differing(before, after, margins.across):
        return Compared(key, NOT_COMPARABLE, reason, None, None, before, after)
    if not (before.verified and after.verified):
        return _unverified(key, before, after)
    speed, time = _speed(key, before, after, margins)
    accuracy, error = _accuracy(before, after, margins)
    words = [word for word in (speed, accuracy) if word not in ("", "same")]
    verdict = ", ".join(words) or "same"
    return Compared(
        key=key, verdict=verdict, reason=_lacking(time, before, after), time=time,
        error_ratio=error, before=before, after=after,
        regression=key[1] == OURS and bool({"slower", "less accurate"} & {speed, accuracy}),
    )  # fmt: skip


def _differing(before: Row, after: Row, across: frozenset[str]) -> str:
    """Return the factors that differ, with both values; empty where none does.

    A property that one of the two does not tell, such as a table of an earlier version that has no
    seed, is taken to be equal.
    """
    found = []
    for name, value in before.factors.items():
        other = after.factors.get(name, "")
        if name.split()[0] not in across and value and other and value != other:
            found.append(f"{name} {value} / {other}")
    if "parameters" not in across:
        found += _other_parameters(before.parameters, after.parameters)
    if "versions" not in across:
        found += _other_versions(before, after)
    return "; ".join(found)


def _other_parameters(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the parameters that differ, with both values; of one study alone nothing."""
    if not (before and after):
        return []
    pairs = {key: (before.get(key, "none"), after.get(key, "none")) for key in {**before, **after}}
    return [f"parameters {key} {one} / {two}" for key, (one, two) in pairs.items() if one != two]


def _other_versions(before: Row, after: Row) -> list[str]:
    if not (before.versions and after.versions):
        return []
    found = []
    for package, user in _VERSIONS.items():
        values = [row.versions.get(package, "none") for row in (before, after)]
        if values[0] != values[1] and user in ("", before.implementation):
            found.append(f"{package} {values[0]} / {values[1]}")
    return found


def _unverified(key: Key, before: Row, after: Row) -> Compared:
    """Compare two rows, at least one of them not verified."""
    if before.verified:
        lost, why = "no longer verified", after.reason
        return Compared(
            key=key, verdict=lost, reason=why, time=None, error_ratio=None, before=before,
            after=after, regression=key[1] == OURS,
        )  # fmt: skip
    if after.verified:
        return Compared(key, "now verified", before.reason, None, None, before, after)
    why = f"verified in neither: {after.reason}"
    return Compared(key, NOT_COMPARABLE, why, None, None, before, after)


def _speed(key: Key, before: Row, after: Row, margins: Margins) -> tuple[str, Ratio | None]:
    """Return the verdict on the times.

    It is empty where neither has one, and for models of a GPU's precision.
    """
    if (before.model and after.model) or (before.times is None and after.times is None):
        return "", None
    if before.times is None or after.times is None:
        return UNKNOWN_TIMES, None
    ratio = time_ratio(before.times, after.times, key)
    if ratio.low is None or ratio.high is None:
        return UNKNOWN_TIMES, ratio
    most = 1 + margins.time
    if ratio.low > most:
        return "slower", ratio
    if ratio.high < 1 / most:
        return "faster", ratio
    inside = ratio.low >= 1 / most and ratio.high <= most
    return ("same" if inside else "unsettled"), ratio


def _accuracy(before: Row, after: Row, margins: Margins) -> tuple[str, float | None]:
    if before.error is None or after.error is None:
        return "", None
    ratio = max(after.error, _MIN_ERROR) / max(before.error, _MIN_ERROR)
    most = 1 + margins.error
    if ratio > most:
        return "less accurate", ratio
    return ("more accurate" if ratio < 1 / most else "same"), ratio


def _lacking(time: Ratio | None, before: Row, after: Row) -> str:
    """Return why the times have no verdict."""
    if time is not None:
        return "no spread of the times is recorded" if time.low is None else ""
    if before.model and after.model:
        return "a model of a GPU's precision: its errors are compared alone"
    if before.times is not None or after.times is not None:
        lacking = [name for name, row in (("A", before), ("B", after)) if row.times is None]
        return f"no time in {' and '.join(lacking)}"
    return ""


def peers_ratio(rows: Sequence[Compared]) -> float | None:
    """Return the median ratio of the peers' times, which the machine changed; None without any."""
    found = sorted(
        row.time.value for row in rows if row.key[1] != OURS and row.time and row.is_compared
    )
    return found[len(found) // 2] if found else None
