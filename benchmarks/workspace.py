"""Peak memory and time of products and transforms within limits of workspace.

    python -m benchmarks.workspace --csv docs/data/h200-workspace.csv

Each problem is computed without a limit and within each of several (`argand.workspace_limit`), into
an array that is there. The peak is what a call takes of CuPy's pool at most, beside operands and
result. ``--compile`` only makes each call once, of one precision: processes of several
precisions compile beside each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from argand import WorkspaceError, dft, gemm, launched, workspace_limit
from argand.device import gpu

from benchmarks.harness.device_memory import most_allocated
from benchmarks.harness.tables import Table, median_seconds, parser
from workflow.versions import timestamp, versions

PRODUCTS = ("tf32", "3xtf32", "fp16", "3xfp16", "7xint8")
SIDES = (1024, 4096, 8192)
TRANSFORMS = ((64, 1 << 20), (64, (1 << 20) + 7), (4096, 10_007))
LIMITS = (None, 512 << 20, 128 << 20, 32 << 20)
"""Bytes; cuBLAS takes the least of them."""
_REPEATS = 7
_PIECES = 4 * 512
"""The pool gives memory in multiples of 512 bytes, for at most four parts of a workspace."""


@dataclass(frozen=True)
class WorkspaceRow:
    """One problem within one limit.

    Attributes:
        operation, shape, precision: of the call.
        limit_bytes: 0 without a limit.
        peak_bytes: that the call took beside operands and result, -1 where it was refused.
        needed_bytes: what the error says, where it was refused.
        kernels: the names of what ran, by records.
        time_us: the median of calls in a row.
        within: whether the peak is at most the limit, to the pool's pieces, and the result that
            of the call without a limit, to 1e-4 of its largest element (fp16 1e-2).
    """

    operation: str
    shape: str
    precision: str
    limit_bytes: int
    peak_bytes: int
    needed_bytes: int
    kernels: str
    time_us: float
    within: bool
    device: str
    versions: str
    timestamp: str


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all rows; the exit status is 1 where a limit does not hold."""
    found = parser(__doc__)
    found.add_argument("--compile", metavar="PRECISION", help="make calls of it once")
    arguments = found.parse_args(argv)
    import cupy

    table, device = Table(arguments.csv), gpu(cupy.cuda.Device().id).name
    for operation, shape, precision, call, out in problems(cupy, arguments.compile):
        expected: Any = None
        for limit in LIMITS:
            with workspace_limit(limit):
                if arguments.compile:
                    _made(call)
                    continue
                row, expected = _measured(cupy, call, out, limit, expected, precision)
            whole = WorkspaceRow(
                operation, shape, precision, limit or 0, *row, device, versions(), timestamp()
            )  # fmt: skip
            table.add([whole], line(whole))
    return table.status("within")


def problems(cupy: Any, only: str | None) -> Iterator[tuple[str, str, str, Callable[[], Any], Any]]:
    """Yield operation, shape, precision, the call and the array that it writes."""
    random = cupy.random.default_rng(1)
    for side in SIDES:
        a, b = (
            random.standard_normal((side, 2 * side), dtype=cupy.float32).view(cupy.complex64)
            for _ in "ab"
        )
        out = cupy.empty_like(a)
        for precision in PRODUCTS:
            if only in (None, precision):
                yield (
                    "gemm", f"{side}x{side}x{side}", precision,
                    partial(gemm, a, b, precision=precision, out=out), out,
                )  # fmt: skip
    for rows, length in TRANSFORMS if only in (None, "dft") else ():
        x = random.standard_normal((rows, 2 * length), dtype=cupy.float32).view(cupy.complex64)
        out = cupy.empty_like(x)
        yield (
            "dft", f"{rows} x {length}", "3xfp16",
            partial(dft, x, precision="3xfp16", out=out), out,
        )  # fmt: skip


def _made(call: Callable[[], Any]) -> int:
    """Make a call; return the bytes that an error says it needs, else 0."""
    try:
        call()
    except WorkspaceError as error:
        return error.needed
    return 0


def _measured(
    cupy: Any, call: Callable[[], Any], out: Any, limit: int | None, expected: Any, precision: str
) -> tuple[tuple[int, int, str, float, bool], Any]:
    """Return the measured columns of a row, and the result without a limit."""
    out.fill(cupy.nan)
    with launched() as names:
        needed = _made(call)
    if needed:
        return (-1, needed, "", 0.0, True), expected
    found = out.copy() if expected is None else expected
    tolerance = 1e-2 if precision == "fp16" else 1e-4
    right = float(abs(out - found).max()) <= tolerance * float(abs(found).max())
    peak = most_allocated(cupy, call)
    seconds = median_seconds(call, _REPEATS)
    within = limit is None or peak <= limit + _PIECES
    return (peak, 0, ", ".join(names), 1e6 * seconds, within and right), found


def line(row: WorkspaceRow) -> str:
    """Return a row as it is printed."""
    limit = f"{row.limit_bytes >> 20} MiB" if row.limit_bytes else "no limit"
    took = (
        f"refused, needs {row.needed_bytes} bytes"
        if row.needed_bytes
        else f"{row.peak_bytes / 2**20:8.1f} MiB {row.time_us:10.1f} us {row.kernels[:60]}"
    )
    wrong = "" if row.within else " NOT WITHIN, OR WRONG"
    return f"{row.operation} {row.shape:18} {row.precision:7} {limit:9} {took}{wrong}"


if __name__ == "__main__":
    sys.exit(main())
