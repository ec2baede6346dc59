"""Time and bits of drawn calls by this checkout and by another, in turn.

    git worktree add ../before COMMIT
    python -m benchmarks.beside ../before gemm --cases 40 --seed 20261128 --csv rows.csv

The cases are those of `benchmarks.sweep`, drawn by the seed. Each checkout's argand runs in a
process of its own, on the same card and on equal operands, both by the benchmarks of this one. A
call is timed in turn: one process times it in a row of calls while the other waits, every second
round the other way about. ``ratio`` is this checkout's time over the other's; medians of the
rounds. With ``--changed`` calls that the same kernels by name compute are not timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.beside.messages import Draw, Opened, Times
from benchmarks.beside.side import Side, SideError
from benchmarks.harness.tables import Table, parser
from benchmarks.sweep.draws import SWEEPS
from benchmarks.sweep.quantiles import quantiles_of
from workflow.versions import timestamp, versions

_ROUNDS = 6
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Row:
    """A call of both checkouts; times are None where it was not timed, as ``reason`` says."""

    operation: str
    shape: str
    kind: str
    precision: str
    before_us: float | None = None
    after_us: float | None = None
    ratio: float | None = None
    before_host_us: float | None = None
    after_host_us: float | None = None
    equal_bits: bool | None = None
    before_plan: str = ""
    after_plan: str = ""
    reason: str = ""
    before_digest: str = ""
    after_digest: str = ""
    device: str = ""
    seed: int = 0
    versions: str = ""
    timestamp: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and sum up; the exit status is 1 where a checkout refused or failed at a call."""
    given = _parser().parse_args(argv)
    draw = Draw(given.what, given.cases, given.seed, given.device)
    table, rows = Table(given.csv), list[Row]()
    try:
        with (
            closing(Side(given.before.resolve(), draw)) as before,
            closing(Side(_ROOT, draw)) as after,
        ):
            for row in _rows(before, after, draw, given):
                rows.append(row)
                table.add([row], _line(row))
    except SideError as error:
        print(error, file=sys.stderr)
        return 1
    print(*_summary(rows), sep="\n", flush=True)
    return int(any(row.equal_bits is None for row in rows))


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("before", type=Path, help="the other checkout")
    found.add_argument("what", choices=SWEEPS)
    found.add_argument("--cases", type=int, default=20, help="sizes to draw")
    found.add_argument("--seed", type=int, required=True, help="such as the day's date")
    found.add_argument("--changed", action="store_true", help="time calls of other kernels alone")
    found.add_argument("--seconds", type=float, help="no case begins after this many")
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    return found


def _rows(before: Side, after: Side, draw: Draw, given: argparse.Namespace) -> Iterator[Row]:
    """Yield a row of each call, as it is measured."""
    sides = before, after
    started = time.perf_counter()
    device, _ = _both(sides, "compile")
    print(f"{device}; kernels compiled in {time.perf_counter() - started:.0f} s", flush=True)
    started = time.perf_counter()
    for number in range(draw.cases):
        if given.seconds and time.perf_counter() - started > given.seconds:
            print(f"stopped after {number} of {draw.cases} cases: {given.seconds:.0f} s")
            return
        ((operation, shape, kind), precisions), _ = _both(sides, "labels", number)
        digests = _both(sides, "digest", number)
        for place, precision in enumerate(precisions):
            row = Row(
                operation, shape, kind, precision, before_digest=digests[0],
                after_digest=digests[1], device=device, seed=draw.seed, versions=versions(),
                timestamp=timestamp(),
            )  # fmt: skip
            yield _measured(row, sides, (number, place), given.changed)


def _measured(row: Row, sides: Sequence[Side], call: tuple[int, int], only_changed: bool) -> Row:
    """Return the row with what both checkouts say of a call."""
    try:
        opened: list[Opened] = _both(sides, "open", *call)
        same = opened[0].plan == opened[1].plan
        row = replace(
            row, before_plan=opened[0].plan, after_plan=opened[1].plan,
            equal_bits=opened[0].digest == opened[1].digest,
        )  # fmt: skip
        if only_changed and same:
            return replace(row, reason="the same kernels")
        rounds: list[list[Times]] = [[], []]
        for number in range(_ROUNDS):
            for place in (0, 1) if number % 2 == 0 else (1, 0):
                rounds[place].append(sides[place].call("time"))
    except SideError as error:
        return replace(row, reason=str(error))
    device = [statistics.median(one.device_us for one in times) for times in rounds]
    host = [statistics.median(one.host_us for one in times) for times in rounds]
    return replace(
        row, before_us=device[0], after_us=device[1], ratio=device[1] / device[0],
        before_host_us=host[0], after_host_us=host[1],
    )  # fmt: skip


def _both(sides: Sequence[Side], name: str, *given: object) -> list[Any]:
    """Ask both checkouts at once, and return their answers, or raise the first error of either."""
    for side in sides:
        side.ask(name, *given)
    answers, errors = [], list[SideError]()
    for side in sides:
        try:
            answers.append(side.answer())
        except SideError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return answers


def _line(row: Row) -> str:
    call = f"{row.operation} {row.shape} {row.kind} {row.precision}:"
    if row.ratio is None:
        return f"{call} {row.reason}"
    bits = "" if row.equal_bits else ", other bits"
    other = "" if row.before_plan == row.after_plan else f", {row.after_plan}"
    return f"{call} {row.before_us:.1f} to {row.after_us:.1f} us, {row.ratio:.3f}{bits}{other}"


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line of each operation and precision, and one of the calls whose kernels differ."""
    for name in dict.fromkeys((row.operation, row.precision) for row in rows):
        mine = [row for row in rows if (row.operation, row.precision) == name]
        changed = [row for row in mine if row.before_plan != row.after_plan]
        parts = [("calls", mine), ("of them by other kernels", changed)]
        for what, some in parts if changed else parts[:1]:
            found = quantiles_of(row.ratio for row in some)
            equal = sum(row.equal_bits is True for row in some)
            spread = "" if found is None else (
                f", {found.geometric_mean:.3f} of the time in {found.count}, {found.least:.3f} "
                f"to {found.most:.3f}"
            )  # fmt: skip
            yield f"{' '.join(name):15} {len(some):4} {what}, {equal} with equal bits{spread}"


if __name__ == "__main__":
    sys.exit(main())
