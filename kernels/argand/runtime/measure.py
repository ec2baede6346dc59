"""What tuning shares: ranking, the shapes of a command line, the table printed."""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from argand.device import DeviceError, gpus

W = TypeVar("W")
_CALLS = 9
"""Timed calls of a way that is worth it."""
_HOPELESS = 3.0
"""Times the quickest first call, from which on a way is not looked at further."""


def two_sizes(form: str) -> Callable[[str], tuple[int, int]]:
    """A parser of two positive integers in a form such as ROWSxCOLUMNS."""

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
    """Measure each shape of (rows, ``axis``) and print the fastest way and the next.

    ``tune`` gives the ways and their microseconds, the fastest first. Lines go to standard error as
    they are measured, the table to standard output. The exit status is 2 where a shape or the
    device is not fit for it.
    """
    lines = [f"| rows x {axis} | fastest | time (us) | next (us) | ways |",
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
    """Raise DeviceError where there is nothing to measure on."""
    if not gpus():
        raise DeviceError("tuning needs an NVIDIA GPU, but none answers (is CuPy installed?)")


def ranked(ways: Iterable[W], times: Callable[[W, int], Sequence[float]]) -> list[tuple[W, float]]:
    """Ways with the median of their times, the fastest first.

    ``times(way, count)`` are the microseconds of so many calls. A way whose first call takes
    ``_HOPELESS`` times the quickest first call so far is left at that. First calls are compared
    with each other, because a single one waits for the host where several in a row do not.
    """
    found: list[tuple[W, float]] = []
    quickest = math.inf
    for way in ways:
        first = times(way, 1)[0]
        if first > _HOPELESS * quickest:
            found.append((way, first))
            continue
        quickest = min(quickest, first)
        found.append((way, statistics.median(times(way, _CALLS))))
    return sorted(found, key=lambda pair: pair[1])
