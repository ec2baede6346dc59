"""Peak memory and time of products, Hermitian products and transforms within limits of workspace.

    python -m benchmarks.workspace --csv docs/data/h200-workspace.csv

Each problem is computed without a limit and within each of several (`argand.workspace_limit`), into
an array that is there. The peak is what a call takes of CuPy's pool at most, beside operands and
result; beside it stand the documented most and what cuBLAS or cuFFT takes for itself
(`benchmarks.workspace_documented`). Results are compared with fp64
(`benchmarks.workspace_references`).
``--compile`` only makes each call once, of one precision: processes of several precisions compile
beside each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from argand import (
    DftPlan,
    GemmPlan,
    WorkspaceError,
    dft,
    gemm,
    get_precision,
    herk,
    launched,
    pairs,
    workspace_limit,
)
from argand.device import gpu
from argand.herk.problem import FORMS

from benchmarks.harness.device_memory import most_allocated
from benchmarks.harness.tables import Table, median_seconds, parser
from benchmarks.workspace_documented import by_plan, of_cublas, of_cufft, of_herk
from benchmarks.workspace_references import (
    EXACT,
    HermitianProducts,
    Products,
    Reference,
    Transforms,
)
from workflow.accuracy.transform_bounds import plan_bound
from workflow.versions import timestamp, versions

PRODUCTS = ("tf32", "3xtf32", "fp16", "3xfp16", "7xint8", "fp32", "fp64")
"""Precisions; cuBLAS computes the last two."""
SIDES = (1024, 4096, 8192)
HERMITIAN = 4096
"""Lines and samples of Hermitian products."""
TRANSFORMS = ((64, 1 << 20), (64, (1 << 20) + 7), (4096, 10_007))
LIMITS = (None, 512 << 20, 128 << 20, 32 << 20, 16 << 10)
"""Bytes; cuBLAS takes at most the least but one of them, and at least the last."""
_REPEATS = 7
_PIECES = 4 * 512
"""The pool gives memory in multiples of 512 bytes, for at most four parts of a workspace."""


@dataclass(frozen=True)
class WorkspaceRow:
    """One problem within one limit.

    Attributes:
        operation, shape, precision: the call.
        limit_bytes: 0 without a limit.
        library_bytes: what cuBLAS, or cuFFT for transforms, takes for the problem by itself.
        peak_bytes: what the call took beside operands and result, -1 where it was refused.
        documented_bytes: the most by `describe()` or the documentation, -1 where it was refused.
        needed_bytes: what the error says, where it was refused.
        kernels: the names of what ran, by records.
        time_us: the median of calls in a row.
        within: whether the peak is at most the limit and what is documented, to the pool's pieces,
            and each element of a product, or each transform in norm, within the bound of
            its precision.
    """

    operation: str
    shape: str
    precision: str
    limit_bytes: int
    library_bytes: int
    peak_bytes: int
    documented_bytes: int
    needed_bytes: int
    kernels: str
    time_us: float
    within: bool
    device: str
    versions: str
    timestamp: str


class Problem(NamedTuple):
    """One call, the array that it writes, what that is compared with, and the call's workspace.

    ``documented`` returns the most bytes by documentation, within the limit in force.
    """

    operation: str
    shape: str
    precision: str
    call: Callable[[], Any]
    out: Any
    reference: Reference
    documented: Callable[[], int]
    library: Callable[[Any], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all rows; the exit status is 1 where a limit or a bound does not hold."""
    found = parser(__doc__)
    found.add_argument("--compile", metavar="PRECISION", help="make calls of it once")
    arguments = found.parse_args(argv)
    import cupy

    table, device = Table(arguments.csv), gpu(cupy.cuda.Device().id).name
    streams: list[Any] = []
    for problem in problems(cupy, arguments.compile):
        library = 0 if arguments.compile else problem.library(cupy)
        for limit in LIMITS:
            with workspace_limit(limit):
                if arguments.compile:
                    _needed_bytes(problem.call)
                    continue
                measured = _measured(cupy, problem, limit, streams)
            row = WorkspaceRow(
                problem.operation, problem.shape, problem.precision, limit or 0, library,
                *measured, device, versions(), timestamp(),
            )  # fmt: skip
            table.add([row], line(row))
    return table.status("within")


def problems(cupy: Any, only: str | None) -> Iterator[Problem]:
    """Yield all problems, or those of one precision, or of transforms."""
    random = cupy.random.default_rng(1)
    some = [precision for precision in PRODUCTS if only in (None, precision)]
    for side in SIDES if some else ():
        yield from products([normal(cupy, random, side, side) for _ in "ab"], some, cupy)
    if some or only == EXACT:
        yield from hermitian(normal(cupy, random, HERMITIAN, HERMITIAN), some, cupy)
    if only in (None, EXACT):
        parts = random.integers(-128, 128, (HERMITIAN, HERMITIAN, 2)).astype("int8")
        yield from hermitian(pairs(parts), [EXACT], cupy)
    for shape in TRANSFORMS if only in (None, "dft") else ():
        yield transforms(normal(cupy, random, *shape), cupy)


def normal(cupy: Any, random: Any, rows: int, columns: int) -> Any:
    """Return normal numbers, complex64."""
    parts = random.standard_normal((rows, 2 * columns), dtype=cupy.float32)
    return parts.view(cupy.complex64)


def products(operands: Sequence[Any], precisions: Sequence[str], cupy: Any) -> Iterator[Problem]:
    """Yield the product of two matrices at some precisions."""
    reference, side = Products(cupy, *operands), len(operands[0])
    for precision in precisions:
        a, b = _of_type(operands, precision)
        out = cupy.empty_like(a)
        call = partial(gemm, a, b, precision=precision, out=out)
        documented = partial(by_plan, GemmPlan, a, b, precision=precision)
        yield Problem(
            "gemm", f"{side}x{side}x{side}", precision, call, out, reference, documented, of_cublas
        )  # fmt: skip


def hermitian(x: Any, precisions: Sequence[str], cupy: Any) -> Iterator[Problem]:
    """Yield X X^H at some precisions, whole and as a triangle, of numbers or of pairs."""
    n, k = x.shape
    numbers = x if precisions != [EXACT] else x.array.astype("float32").view("complex64")[..., 0]
    reference = HermitianProducts(cupy, numbers)
    for precision in precisions:
        (a,) = [x] if precision == EXACT else _of_type([x], precision)
        for form in FORMS:
            shape = (n, n) if form == "full" else (n * (n + 1) // 2,)
            out = cupy.empty(shape, "complex64" if precision == EXACT else a.dtype)
            call = partial(herk, a, precision=precision, form=form, out=out)
            documented = partial(of_herk, a, precision, form)
            yield Problem(
                f"herk, {form}", f"{n}x{n}x{k}", precision, call, out, reference, documented,
                of_cublas,
            )  # fmt: skip


def _of_type(arrays: Sequence[Any], precision: str) -> list[Any]:
    """Return arrays in the type of results: others would be converted, in memory of the call."""
    return [x.astype("complex128") if precision == "fp64" else x for x in arrays]


def transforms(x: Any, cupy: Any) -> Problem:
    """Return the transforms of rows."""
    out = cupy.empty_like(x)
    call = partial(dft, x, precision="3xfp16", out=out)
    rows, length = x.shape
    return Problem(
        "dft", f"{rows} x {length}", "3xfp16", call, out, _transforms(cupy, x, out),
        partial(by_plan, DftPlan, x, precision="3xfp16"), partial(of_cufft, x),
    )  # fmt: skip


def _transforms(cupy: Any, x: Any, out: Any) -> Transforms:
    """Return the transforms of rows, with the bound of the plan that computes them."""
    from argand.dft.gpu import plan_of

    plan = plan_of(x, precision="3xfp16", out=out).plan
    return Transforms(cupy, x, plan_bound(plan, get_precision("3xfp16"), x.shape[1]))


def _needed_bytes(call: Callable[[], Any]) -> int:
    """Make a call; return the bytes that an error says it needs, else 0."""
    try:
        call()
    except WorkspaceError as error:
        return error.needed
    return 0


def _measured(
    cupy: Any, problem: Problem, limit: int | None, streams: list[Any]
) -> tuple[int, int, int, str, float, bool]:
    """Return the measured columns of a row; ``streams`` are those of `_peak`."""
    call, out = problem.call, problem.out
    out.fill(cupy.nan)
    with launched() as names:
        needed = _needed_bytes(call)
    if needed:
        return -1, -1, needed, "", 0.0, True
    right = problem.reference.holds(out, problem.precision)
    peak = _peak(cupy, call, streams)
    seconds = median_seconds(call, _REPEATS)
    documented = problem.documented()
    within = peak <= min(documented, documented if limit is None else limit) + _PIECES
    return peak, documented, 0, ", ".join(names), 1e6 * seconds, within and right


def _peak(cupy: Any, call: Callable[[], Any], streams: list[Any]) -> int:
    """Return the most bytes that a call takes on a stream of its own, without counters.

    What a stream keeps for cuBLAS is not there yet. All ``streams`` before are kept, because that
    goes by a stream's address.
    """
    streams.append(cupy.cuda.Stream())
    with streams[-1]:
        found = most_allocated(cupy, call)
    streams[-1].synchronize()
    cupy.get_default_memory_pool().free_all_blocks(streams[-1])
    return found


def limit_in_words(nbytes: int) -> str:
    """Return a limit in MiB, or KiB below one."""
    return f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"


def line(row: WorkspaceRow) -> str:
    """Return a row as it is printed."""
    limit = limit_in_words(row.limit_bytes) if row.limit_bytes else "no limit"
    took = (
        f"refused, needs {row.needed_bytes} bytes"
        if row.needed_bytes
        else f"{row.peak_bytes / 2**20:8.2f} of {row.documented_bytes / 2**20:8.2f} MiB "
        f"{row.time_us:10.1f} us {row.kernels[:60]}"
    )
    wrong = "" if row.within else " NOT WITHIN, OR WRONG"
    return f"{row.operation:14} {row.shape:18} {row.precision:7} {limit:9} {took}{wrong}"


if __name__ == "__main__":
    sys.exit(main())
