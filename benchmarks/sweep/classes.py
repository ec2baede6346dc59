"""Products of a sweep compared by class: the best at fp32's errors, and 16 bits beside tf32."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from argand.precision import any_precision

from benchmarks.sweep.quantiles import Quantiles, quantiles_of

_LIBRARY_US = (0.0, 15.0, 50.0, 200.0, 1000.0, math.inf)
"""Bounds of a library's time, by which cases of the fp32 class are counted apart."""


class Timed(NamedTuple):
    """One product of ours: its case and precision, its time and ratio to the best peer."""

    case: tuple[str, str]
    precision: str
    time_us: float
    ratio: float | None


def compared(products: Iterable[Timed]) -> Mapping[str, Quantiles]:
    """Return the quantiles of what stands beside a library's or our own times, by its name.

    ``fp32 class`` has the larger ratio of a case among the precisions of that class, where several
    were timed, of all cases and of those in which the library takes so long; ``fp16 beside tf32``
    and ``bf16 beside tf32`` have our time at tf32 over that at 16 bits.
    """
    at_tf32, classes, halves = {}, defaultdict(list), defaultdict(list)
    for one in products:
        peer_class = any_precision(one.precision).peer_class
        if one.precision == "tf32":
            at_tf32[one.case] = one.time_us
        elif peer_class == "half":
            halves[one.precision].append(one)
        elif peer_class == "fp32" and one.ratio is not None:
            classes[one.case].append((one.ratio, one.ratio * one.time_us))
    found = {}
    if any(len(ratios) > 1 for ratios in classes.values()):
        best = [max(ratios) for ratios in classes.values()]
        found["fp32 class"] = quantiles_of(ratio for ratio, _ in best)
        for least, most in pairwise(_LIBRARY_US):
            name = f"fp32 class, library {least:g} to {most:g} us"
            found[name.replace("to inf us", "us and more")] = quantiles_of(
                ratio for ratio, library_us in best if least <= library_us < most
            )
    for name, some in halves.items():
        found[f"{name} beside tf32"] = quantiles_of(
            at_tf32[one.case] / one.time_us for one in some if one.case in at_tf32
        )
    return {name: quantiles for name, quantiles in found.items() if quantiles is not None}
