"""Products of a sweep compared by class: the better split precision, and 16 bits beside tf32."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from argand import PRECISIONS

from benchmarks.sweep.quantiles import Quantiles, quantiles_of


class Timed(NamedTuple):
    """One product of ours: its case and precision, its time and ratio to the best peer."""

    case: tuple[str, str]
    precision: str
    time_us: float
    ratio: float | None


def compared(products: Iterable[Timed]) -> Mapping[str, Quantiles]:
    """Return the quantiles of what stands beside a library's or our own times, by its name.

    ``fp32 class`` has the larger ratio of a case among the precisions of that class, where several
    were timed; ``fp16 beside tf32`` and ``bf16 beside tf32`` have our time at tf32 over that at 16
    bits.
    """
    at_tf32, classes, halves = {}, defaultdict(list), defaultdict(list)
    for one in products:
        peer_class = PRECISIONS[one.precision].peer_class
        if one.precision == "tf32":
            at_tf32[one.case] = one.time_us
        elif peer_class == "half":
            halves[one.precision].append(one)
        elif peer_class == "fp32" and one.ratio is not None:
            classes[one.case].append(one.ratio)
    found = {"fp32 class": quantiles_of(max(ratios) for ratios in classes.values())}
    if all(len(ratios) < 2 for ratios in classes.values()):
        found.clear()
    for name, some in halves.items():
        found[f"{name} beside tf32"] = quantiles_of(
            at_tf32[one.case] / one.time_us for one in some if one.case in at_tf32
        )
    return {name: quantiles for name, quantiles in found.items() if quantiles is not None}
