"""The summary of a sweep: slower cases, the spread of ratios, and the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.sweep.case import Row
from tools.docs.sweep_tables import SLOWER

_WORST = 10


def summary(rows: Sequence[Row]) -> list[str]:
    """Return lines for people: ratios, fractions of a copy and regrets, then the worst cases."""
    ours = [row for row in rows if row.implementation == "argand" and row.verified]
    lines = [*_ratios(ours), *_fractions(ours), *_regrets(ours), *_halves(ours), *_worst(ours)]
    bad = [row for row in rows if row.implementation == "argand" and not row.verified]
    if bad:
        lines.append(f"{len(bad)} results of ours did not verify or did not run:")
        lines += [f"  {row.shape} {row.kind} {row.precision}: {row.reason}" for row in bad[:_WORST]]
    missing = {(row.implementation, row.reason) for row in rows
               if row.implementation not in ("argand", "plan") and row.time_us is None}  # fmt: skip
    lines += [f"{name}: {reason}" for name, reason in sorted(missing)][:_WORST]
    return lines


def _by_precision(
    rows: Sequence[Row], value: Callable[[Row], float | None]
) -> Iterator[tuple[str, np.ndarray]]:
    """Operation and precision with the values that there are."""
    for name in dict.fromkeys((row.operation, row.precision) for row in rows):
        found = [value(row) for row in rows if (row.operation, row.precision) == name]
        values = np.array([x for x in found if x is not None])
        if values.size:
            yield " ".join(name), values


def _ratios(ours: Sequence[Row]) -> Iterator[str]:
    for name, values in _by_precision(ours, lambda row: row.ratio):
        yield (
            f"{name:15} {len(values):4} cases, {int((values < SLOWER).sum()):3} slower than "
            f"{SLOWER} of the best peer; worst {values.min():.2f}, p10 "
            f"{np.quantile(values, 0.1):.2f}, median {np.median(values):.2f}, geometric mean "
            f"{np.exp(np.log(values).mean()):.2f}"
        )


def _fractions(ours: Sequence[Row]) -> Iterator[str]:
    bound = [row for row in ours if row.operation != "gemm"]
    for name, values in _by_precision(bound, lambda row: row.of_copy):
        yield (
            f"{name:15} {len(values):4} cases, of a copy's rate: worst {values.min():.2f}, p10 "
            f"{np.quantile(values, 0.1):.2f}, median {np.median(values):.2f}"
        )


def _regrets(ours: Sequence[Row]) -> Iterator[str]:
    for name, values in _by_precision(ours, lambda row: row.regret):
        yield (
            f"{name:15} {len(values):4} cases with every plan: regret median "
            f"{np.median(values):.2f}, p90 {np.quantile(values, 0.9):.2f}, worst {values.max():.2f}"
        )


def _halves(ours: Sequence[Row]) -> Iterator[str]:
    """How often 16 bits are slower than tf32 of the same product."""
    times = {
        (row.shape, row.kind, row.precision): row.time_us
        for row in ours if row.operation == "gemm" and row.time_us is not None
    }  # fmt: skip
    for name in ("fp16", "bf16"):
        values = np.array([
            times[shape, kind, "tf32"] / time for (shape, kind, precision), time in times.items()
            if precision == name and (shape, kind, "tf32") in times
        ])  # fmt: skip
        if values.size:
            yield (
                f"gemm {name:10} {len(values):4} cases, {int((values < SLOWER).sum()):3} slower "
                f"than {SLOWER} of our tf32; worst {values.min():.2f}"
            )


def _worst(ours: Sequence[Row]) -> Iterator[str]:
    beside = [(row.ratio, row) for row in ours if row.ratio is not None]
    for ratio, row in sorted(beside, key=lambda pair: pair[0])[:_WORST]:
        yield (
            f"  {ratio:5.2f}  {row.operation} {row.shape} {row.kind} {row.precision}, "
            f"{row.time_us or 0:.1f} us: {row.plan}"
        )
