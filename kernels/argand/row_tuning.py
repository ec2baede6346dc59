"""What the commands share that measure rows: shapes on the command line, and the table printed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from argand.device import DeviceError


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
