"""The summary of a sweep: slower cases, the spread of ratios, and the worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.sweep.case import OURS, Row
from benchmarks.sweep.classes import Timed, compared
from benchmarks.sweep.quantiles import SLOWER, Quantiles, quantiles_of
from benchmarks.sweep.recorded import BOUND_BY_PRODUCTS

_WORST = 10


def summary(rows: Sequence[Row]) -> list[str]:
    """Return lines for people: ratios, fractions of a copy and regrets, then the worst cases."""
    ours = [row for row in rows if row.implementation == "argand" and row.verified]
    lines = [*_ratios(ours), *_fractions(ours), *_regrets(ours), *_classes(ours), *_worst(ours)]
    bad = [row for row in rows if row.implementation == "argand" and not row.verified]
    if bad:
        lines.append(f"{len(bad)} results of ours did not verify or did not run:")
        lines += [f"  {row.shape} {row.kind} {row.precision}: {row.reason}" for row in bad[:_WORST]]
    missing = {(row.implementation, row.reason) for row in rows
               if row.implementation not in OURS and row.time_us is None}  # fmt: skip
    lines += [f"{name}: {reason}" for name, reason in sorted(missing)][:_WORST]
    return lines


def _by_precision(
    rows: Sequence[Row], value: Callable[[Row], float | None]
) -> Iterator[tuple[str, Quantiles]]:
    """Yield operation and precision with the quantiles of the values that there are."""
    for name in dict.fromkeys((row.operation, row.precision) for row in rows):
        found = quantiles_of(value(row) for row in rows if (row.operation, row.precision) == name)
        if found:
            yield " ".join(name), found


def _ratios(ours: Sequence[Row]) -> Iterator[str]:
    for name, found in _by_precision(ours, lambda row: row.ratio):
        yield (
            f"{name:15} {found.count:4} cases, {found.slower:3} slower than {SLOWER} of the best "
            f"peer; worst {found.least:.2f}, p10 {found.p10:.2f}, median {found.median:.2f}, "
            f"geometric mean {found.geometric_mean:.2f}"
        )


def _fractions(ours: Sequence[Row]) -> Iterator[str]:
    bound = [row for row in ours if row.operation not in BOUND_BY_PRODUCTS]
    for name, found in _by_precision(bound, lambda row: row.of_copy):
        yield (
            f"{name:15} {found.count:4} cases, of a copy's rate: worst {found.least:.2f}, p10 "
            f"{found.p10:.2f}, median {found.median:.2f}"
        )


def _regrets(ours: Sequence[Row]) -> Iterator[str]:
    for name, found in _by_precision(ours, lambda row: row.regret):
        yield (
            f"{name:15} {found.count:4} cases with every plan: regret median {found.median:.2f}, "
            f"p90 {found.p90:.2f}, worst {found.most:.2f}"
        )
    known = [(row.regret, row) for row in ours if row.regret is not None]
    together = quantiles_of(regret for regret, _ in known)
    if together:
        yield (
            f"all of them     {together.count:4} cases with every plan: regret median "
            f"{together.median:.2f}, p90 {together.p90:.2f}, worst {together.most:.2f}"
        )
    for regret, row in sorted(known, key=lambda pair: -pair[0])[:_WORST]:
        yield f"  {regret:5.2f}  {row.operation} {row.shape} {row.kind} {row.precision}: {row.plan}"


def _classes(ours: Sequence[Row]) -> Iterator[str]:
    """Yield the best at fp32's errors beside fp32, and how often 16 bits are slower than tf32."""
    found = compared(
        Timed((row.shape, row.kind), row.precision, row.time_us, row.ratio)
        for row in ours if row.operation == "gemm" and row.time_us is not None
    )  # fmt: skip
    for name, some in found.items():
        yield (
            f"gemm {name:34} {some.count:4} cases, {some.slower:3} slower than {SLOWER}; worst "
            f"{some.least:.2f}, geometric mean {some.geometric_mean:.2f}"
        )


def _worst(ours: Sequence[Row]) -> Iterator[str]:
    beside = [(row.ratio, row) for row in ours if row.ratio is not None]
    for ratio, row in sorted(beside, key=lambda pair: pair[0])[:_WORST]:
        yield (
            f"  {ratio:5.2f}  {row.operation} {row.shape} {row.kind} {row.precision}, "
            f"{row.time_us or 0:.1f} us: {row.plan}"
        )
