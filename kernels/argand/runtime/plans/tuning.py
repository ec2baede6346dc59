"""The common parts of tuning: ranking, shapes on a command line, the printed table."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from argand.device import DeviceError, gpus

P = TypeVar("P")
_CALLS = 9
"""Timed calls of a candidate."""
_HOPELESS = 3.0
"""A candidate whose first call takes this many times the quickest one is called once only."""


def two_sizes(form: str) -> Callable[[str], tuple[int, int]]:
    """Return a parser of two positive integers in a form such as ROWSxCOLUMNS."""

    def parse(text: str) -> tuple[int, int]:
        parts = text.split("x")
        if len(parts) != 2 or not all(part.isdecimal() and int(part) for part in parts):
            raise argparse.ArgumentTypeError(f"must be {form}, positive integers, got {text!r}")
        return int(parts[0]), int(parts[1])

    return parse


def print_table(
    prog: str,
    axis: str,
    shapes: Iterable[tuple[int, int]],
    tune: Callable[[int, int], Sequence[tuple[Any, float]]],
) -> int:
    """Measure each shape of (rows, ``axis``); print the fastest candidate and the next one's time.

    ``tune`` returns candidates and their microseconds, the fastest first. Rows go to standard error
    as they are measured, the table to standard output. The exit status is 2 where a shape or the
    device does not allow tuning.
    """
    lines = [f"| rows x {axis} | fastest | time (us) | next (us) | candidates |",
             "| --- | --- | ---: | ---: | ---: |"]  # fmt: skip
    try:
        for rows, length in shapes:
            found = tune(rows, length)
            (best, time), following = found[0], found[1:2]
            after = f"{following[0][1]:.1f}" if following else ""
            lines.append(f"| {rows}x{length} | {best} | {time:.1f} | {after} | {len(found)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    except (ValueError, DeviceError, OSError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def require_gpu() -> None:
    """Raise DeviceError where no GPU answers."""
    if not gpus():
        raise DeviceError(
            "tuning needs an NVIDIA GPU, but none answers (python -m argand doctor says why)"
        )


def ranked(plans: Iterable[P], times: Callable[[P, int], Sequence[float]]) -> list[tuple[P, float]]:
    """Return candidate plans with the median of their times in microseconds, the fastest first.

    ``times(plan, count)`` measures so many calls. A plan whose first call takes ``_HOPELESS`` times
    the quickest first call so far is not called again. First calls are compared with each other,
    because a single call waits for the host where several in a row do not.
    """
    found: list[tuple[P, float]] = []
    quickest = math.inf
    for plan in plans:
        first = times(plan, 1)[0]
        if first > _HOPELESS * quickest:
            found.append((plan, first))
            continue
        quickest = min(quickest, first)
        found.append((plan, statistics.median(times(plan, _CALLS))))
    return sorted(found, key=lambda pair: pair[1])
