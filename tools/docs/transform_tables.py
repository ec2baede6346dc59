"""The tables of transforms that a page may name, from the benchmark's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import geometric_mean

from argand import PRECISIONS
from argand.device import arch_for
from argand.dft.heuristics import choose
from argand.dft.legality import TMA_SM, wide_fits
from argand.dft.method import method_for

from benchmarks.harness.recorded import Row, Rows, plain_rows, read_rows, timed_rows
from tools.docs.shown import text_table

SUITES = ("h200-dft.csv", "h200-dft-primes.csv", "h200-dft-awkward.csv")
"""Files of `benchmarks.dft`, one a suite; the last has lengths with a large prime factor."""

_PRECISION = PRECISIONS["3xfp16"]
_LIBRARY = "cuFFT"


def transforms_table(data: Path) -> str:
    """Return the lengths of the first two suites, ours beside cuFFT."""
    return text_table(beside_cufft(_of_suites(data, SUITES[:-1])), "by", "what ran")


def awkward_table(data: Path) -> str:
    """Return the lengths of large prime factors, ours beside cuFFT."""
    return text_table(beside_cufft(read_rows(data / SUITES[-1])), "by", "what ran")


def earned_table(data: Path) -> str:
    """Return the gain of each kind of plan, at all lengths that `benchmarks.dft.plans` measured."""
    rows = [row for name in ("h200-dft-kinds.csv", "h200-dft-factors.csv")
            for row in plain_rows(data / name)]  # fmt: skip
    return text_table(earned(rows), "plan", "over")


def beside_cufft(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return a line for each length: times, fractions of the copy rate, errors, and cuFFT's."""
    theirs = {row["n"]: row for row in timed_rows(rows, implementation="cufft", precision="fp32")}
    ours = {row["n"]: row for row in timed_rows(rows, implementation="argand", precision="3xfp16")}
    return [
        {
            "length": f"{length:.0f}", "by": _whose(own),
            "time (µs)": f"{own['time_us_p50']:.0f}",
            "cuFFT (µs)": f"{other['time_us_p50']:.0f}",
            "× cuFFT": f"{other['time_us_p50'] / own['time_us_p50']:.2f}",
            "of copy": f"{own['limit_fraction']:.3f}",
            "error": f"{own['rel_frobenius']:.2e}",
            "cuFFT's": f"{other['rel_frobenius']:.2e}",
            "bound": "–" if own["bound"] is None else f"{own['bound']:.2e}",
            "what ran": str(own["algorithm"]),
        }
        for length in sorted(theirs.keys() & ours.keys())
        for own, other in [(ours[length], theirs[length])]
    ]  # fmt: skip


def earned(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return a line for each kind of plan that is chosen on Hopper, without asking cuFFT.

    A plan earns the time of the fastest of the other kinds there, or of cuFFT, over its own.
    """
    times: dict[int, dict[str, float]] = {}
    for row in rows:
        kinds = times.setdefault(int(row["length"]), {})
        kind = row["plan"].split("(")[0]
        kinds[kind] = min(float(row["time_us"]), kinds.get(kind, inf))
    ratios: dict[str, dict[int, float]] = {}
    replaced: dict[str, Counter[str]] = {}
    for length, kinds in sorted(times.items()):
        method = method_for(length)
        wide = wide_fits(method.kind, length, length)
        choice = choose(method, _PRECISION, arch_for(TMA_SM), wide=wide)
        plan, own = choice.plan, type(choice.plan).__name__
        others = {kind: time for kind, time in kinds.items() if kind != own}
        if plan is None or choice.needs_library_kernels or own not in kinds or not others:
            continue
        other = min(others, key=lambda kind: others[kind])
        ratios.setdefault(plan.kind, {})[length] = others[other] / kinds[own]
        name = _LIBRARY if other == _LIBRARY.lower() else other.removesuffix("Plan")
        replaced.setdefault(plan.kind, Counter())[name] += 1
    return [
        {
            "plan": kind, "lengths": f"{len(some)}", "from": f"{min(some)}", "to": f"{max(some)}",
            "earns": f"{geometric_mean(some.values()):.2f}",
            "least": f"{min(some.values()):.2f}",
            "at": f"{min(some, key=lambda length: some[length])}",
            "over": ", ".join(f"{name} {count}" for name, count in replaced[kind].most_common()),
        }
        for kind, some in ratios.items()
    ]  # fmt: skip


def plan_kind(row: Row) -> str:
    """Return the kernels' names: of "4093, butterfly: rader(...)" it is "butterfly"."""
    return str(row["algorithm"]).split(":")[0].split(", ")[-1]


def _whose(row: Row) -> str:
    return _LIBRARY if plan_kind(row) == _LIBRARY.lower() else "ours"


def transform_rows(data: Path) -> Rows:
    """Return the rows of all suites, each length from the first that has it."""
    return _of_suites(data, SUITES)


def _of_suites(data: Path, suites: Sequence[str]) -> Rows:
    found: Rows = []
    for suite in suites:
        seen = {row["workload"] for row in found}
        found += [row for row in read_rows(data / suite) if row["workload"] not in seen]
    return found


TRANSFORM_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-transforms-all": transforms_table,
    "h200-transforms-awkward": awkward_table,
    "h200-transforms-earned": earned_table,
}
