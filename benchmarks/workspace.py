"""Peak memory and time of products and transforms within limits of workspace.

    python -m benchmarks.workspace --csv docs/data/h200-workspace.csv

Each problem is computed without a limit and within each of several (`argand.workspace_limit`), into
an array that is there. The peak is what a call takes of CuPy's pool at most, beside operands and
result. Results are compared with fp64, to the bounds of docs/verification.md. ``--compile`` only
makes each call once, of one precision: processes of several precisions compile beside each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

from argand import WorkspaceError, dft, gemm, get_precision, launched, workspace_limit
from argand.device import gpu
from argand.precision import any_precision

from benchmarks.harness.device_memory import most_allocated
from benchmarks.harness.tables import Table, median_seconds, parser
from workflow.accuracy.bounds import product_bound
from workflow.accuracy.transform_bounds import plan_bound
from workflow.accuracy.underflow import underflow
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
        within: whether the peak is at most the limit, to the pool's pieces, and each element of a
            product, or each transform in norm, within the bound of its precision.
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


class Reference(Protocol):
    """The results of a problem in fp64."""

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether a result is within the bound of its precision."""


class Products:
    """The product of two matrices, computed once, when a result is first compared."""

    def __init__(self, cupy: Any, a: Any, b: Any) -> None:
        self._cupy, self._a, self._b = cupy, a, b

    @cached_property
    def _exact(self) -> Any:
        return self._a.astype("complex128") @ self._b.astype("complex128")

    @cached_property
    def _size(self) -> Any:
        """Return |A| |B|, which bounds the terms that each element adds up."""
        return abs(self._a).astype("float64") @ abs(self._b).astype("float64")

    @cached_property
    def _largest(self) -> Any:
        """Return the factor of `underflow` in the bound of each element.

        A component of a scaled line loses up to that part of the line's largest, in each of two
        operands, and twice for products of terms that are not kept.
        """
        largest_a = _components(self._a).max(axis=(1, 2))
        largest_b = _components(self._b).max(axis=(0, 2))
        sums_a = abs(self._a).sum(axis=1, dtype="float64")
        sums_b = abs(self._b).sum(axis=0, dtype="float64")
        outer = self._cupy.outer
        return 2 * 2**0.5 * (outer(largest_a, sums_b) + outer(sums_a, largest_b))

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether each part of each element is within its bound."""
        row, k = any_precision(precision), self._a.shape[1]
        lost = underflow(row, "cuda", k).of_largest
        allowed = product_bound(row, k, "cuda") * self._size + lost * self._largest
        error = abs(_components(out - self._exact)).max(axis=2)
        return bool((error <= allowed).all())


class Transforms:
    """The transforms of rows, computed once, when a result is first compared."""

    def __init__(self, cupy: Any, x: Any, bound: float) -> None:
        self._cupy, self._x, self._bound = cupy, x, bound

    @cached_property
    def _exact(self) -> Any:
        return self._cupy.fft.fft(self._x.astype("complex128"))

    def holds(self, out: Any, precision: str) -> bool:
        """Return whether each row is within the bound, in norm."""
        norm = partial(self._cupy.linalg.norm, axis=1)
        return bool((norm(out - self._exact) <= self._bound * norm(self._exact)).all())


def _components(x: Any) -> Any:
    """Return real and imaginary parts, in an axis of their own."""
    return x.view(x.real.dtype).reshape(*x.shape, 2)


class Problem(NamedTuple):
    """One call, the array that it writes, and what that is compared with."""

    operation: str
    shape: str
    precision: str
    call: Callable[[], Any]
    out: Any
    reference: Reference


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all rows; the exit status is 1 where a limit or a bound does not hold."""
    found = parser(__doc__)
    found.add_argument("--compile", metavar="PRECISION", help="make calls of it once")
    arguments = found.parse_args(argv)
    import cupy

    table, device = Table(arguments.csv), gpu(cupy.cuda.Device().id).name
    for problem in problems(cupy, arguments.compile):
        for limit in LIMITS:
            with workspace_limit(limit):
                if arguments.compile:
                    _made(problem.call)
                    continue
                measured = _measured(cupy, problem, limit)
            row = WorkspaceRow(
                problem.operation, problem.shape, problem.precision, limit or 0, *measured, device,
                versions(), timestamp(),
            )  # fmt: skip
            table.add([row], line(row))
    return table.status("within")


def problems(cupy: Any, only: str | None) -> Iterator[Problem]:
    """Yield all problems, or those of one precision, or of transforms."""
    random = cupy.random.default_rng(1)
    for side in SIDES:
        a, b = (
            random.standard_normal((side, 2 * side), dtype=cupy.float32).view(cupy.complex64)
            for _ in "ab"
        )
        out, reference = cupy.empty_like(a), Products(cupy, a, b)
        for precision in PRODUCTS:
            if only in (None, precision):
                call = partial(gemm, a, b, precision=precision, out=out)
                yield Problem("gemm", f"{side}x{side}x{side}", precision, call, out, reference)
    for rows, length in TRANSFORMS if only in (None, "dft") else ():
        x = random.standard_normal((rows, 2 * length), dtype=cupy.float32).view(cupy.complex64)
        out = cupy.empty_like(x)
        call = partial(dft, x, precision="3xfp16", out=out)
        yield Problem("dft", f"{rows} x {length}", "3xfp16", call, out, _transforms(cupy, x, out))


def _transforms(cupy: Any, x: Any, out: Any) -> Transforms:
    """Return the transforms of rows, with the bound of the plan that computes them."""
    from argand.dft.gpu import plan_of

    plan = plan_of(x, precision="3xfp16", out=out).plan
    return Transforms(cupy, x, plan_bound(plan, get_precision("3xfp16"), x.shape[1]))


def _made(call: Callable[[], Any]) -> int:
    """Make a call; return the bytes that an error says it needs, else 0."""
    try:
        call()
    except WorkspaceError as error:
        return error.needed
    return 0


def _measured(
    cupy: Any, problem: Problem, limit: int | None
) -> tuple[int, int, str, float, bool]:  # fmt: skip
    """Return the measured columns of a row."""
    call, out = problem.call, problem.out
    out.fill(cupy.nan)
    with launched() as names:
        needed = _made(call)
    if needed:
        return -1, needed, "", 0.0, True
    right = problem.reference.holds(out, problem.precision)
    peak = most_allocated(cupy, call)
    seconds = median_seconds(call, _REPEATS)
    within = limit is None or peak <= limit + _PIECES
    return peak, 0, ", ".join(names), 1e6 * seconds, within and right


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
