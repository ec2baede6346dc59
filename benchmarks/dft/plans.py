"""Every plan of a transform beside cuFFT: what ``dft/heuristics.py`` is made from.

    python -m benchmarks.dft.plans --lengths 97,251,1009 --csv out.csv

A line is one length: the copy rate of the same bytes, cuFFT, and the fastest plans. Results are
verified against their bound on some rows, and every element must be finite. The CSV has cuFFT and
each plan, whether `choose` takes it, and the truncation bias of its result, relatively: what
`argand.dft.truncation` should compensate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS, Precision, dft
from argand.device import Arch, gpu
from argand.dft.candidates import best_of_each_kind, candidates, legal_butterflies
from argand.dft.heuristics import choose
from argand.dft.legality import wide_fits
from argand.dft.method import Method, method_for
from argand.dft.plan import Plan, dft_source
from argand.runtime.compile.compiler import compile_all

from benchmarks.harness.tables import Table, median_seconds, parser, shown
from workflow.accuracy.transform_bounds import plan_bound

_LENGTHS = (32, 67, 97, 127, 131, 163, 199, 251, 257, 383, 509, 1009, 2039, 4093, 8191, 10_007)
_CHECKED_ROWS = 64


@dataclass(frozen=True)
class Case:
    """Transforms of one length, their results' place, and what cuFFT and a copy take."""

    method: Method
    precision: Precision
    x: Any
    out: Any
    rows: Any
    exact: Any
    copied: float
    library: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a plan's result was wrong."""
    arguments = _parser().parse_args(argv)
    import cupy

    arch, precision = gpu(0).require_arch(), PRECISIONS[arguments.precision]
    plans = {
        length: _plans(method_for(length), precision, arch, arguments.best)
        for length in arguments.lengths
    }
    compile_all(
        (dft_source(plan, precision), arch.target) for some in plans.values() for plan in some
    )
    rng = cupy.random.default_rng(1)
    numbers = rng.standard_normal(2 * arguments.values, dtype=cupy.float32).view(cupy.complex64)
    place = cupy.empty_like(numbers)
    table = Table(arguments.csv)
    for length in arguments.lengths:
        case = _case(length, precision, numbers, place, arguments.repeats)
        wide = wide_fits(case.method.kind, length, length)
        taken = choose(case.method, precision, arch, wide=wide).plan
        every = [None, *plans[length]]
        rows = [_measured(case, plan, plan == taken, arguments.repeats) for plan in every]
        table.add(rows, *_lines(case, rows))
    return table.status("right")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    ours = [name for name, row in PRECISIONS.items() if not row.exact_operands]
    found.add_argument(
        "--lengths", type=lambda text: [int(part) for part in text.split(",")],
        default=list(_LENGTHS),
    )  # fmt: skip
    found.add_argument("--precision", choices=ours, default="3xfp16")
    found.add_argument("--values", type=int, default=1 << 27, help="numbers at each length")
    found.add_argument("--best", type=int, default=1000, help="of a kind, by estimate")
    found.add_argument("--repeats", type=int, default=5)
    return found


def _plans(method: Method, precision: Precision, arch: Arch, most: int) -> list[Plan]:
    """Return the candidates, and beside products on tensor cores the convolutions without them."""
    wide = wide_fits(method.kind, method.length, method.length)
    found = candidates(method, precision, arch, wide=wide)
    if method.kind == "dense":
        others = legal_butterflies(method.length, precision, arch)
        found += [plan for plan in others if plan not in found]
    return best_of_each_kind(found, most, precision)


def _case(length: int, precision: Precision, numbers: Any, place: Any, repeats: int) -> Case:
    import cupy
    from argand.dft.gpu import PLAN_OVERRIDE

    count = numbers.size // length
    x, out = (array[: count * length].reshape(count, length) for array in (numbers, place))
    rows = cupy.linspace(0, count - 1, min(count, _CHECKED_ROWS)).astype(int)
    exact = cupy.fft.fft(x[rows].astype(cupy.complex128))
    copied = median_seconds(lambda: cupy.copyto(out, x), repeats)
    with PLAN_OVERRIDE.use(None):
        library = median_seconds(lambda: dft(x, out=out), repeats)
    return Case(method_for(length), precision, x, out, rows, exact, copied, library)


def _measured(case: Case, plan: Plan | None, taken: bool, repeats: int) -> dict[str, Any]:
    import cupy
    from argand.dft.gpu import PLAN_OVERRIDE

    case.out.fill(np.nan)
    with PLAN_OVERRIDE.use(plan):
        seconds = median_seconds(
            lambda: dft(case.x, precision=case.precision, out=case.out), repeats
        )
    got = case.out[case.rows].astype(cupy.complex128)
    error = float(cupy.linalg.norm(got - case.exact) / cupy.linalg.norm(case.exact))
    whole = bool(cupy.isfinite(case.out.view(cupy.float32)).all())
    kept = float((cupy.vdot(case.exact, got) / cupy.vdot(case.exact, case.exact)).real)
    return {
        "length": case.method.length, "method": str(case.method), "plan": str(plan or "cufft"),
        "taken": taken, "time_us": 1e6 * seconds,
        "gbytes_per_s": 2 * case.x.nbytes / seconds / 1e9, "of_copy": case.copied / seconds,
        "of_cufft": case.library / seconds, "error": error, "lost": 1 - kept,
        "right": whole and error <= plan_bound(plan, case.precision, case.method.length),
    }  # fmt: skip


def _lines(case: Case, found: list[dict[str, Any]]) -> Iterator[str]:
    yield f"{case.method.length}: cuFFT {case.copied / case.library:.3f} of copy"
    for row in shown(found, 5):
        mark = ("*" if row["taken"] else "") + ("" if row["right"] else " WRONG")
        yield (
            f"  {row['of_copy']:.3f} of copy, {row['of_cufft']:.2f} x cuFFT, error "
            f"{row['error']:.2e}: {row['plan']}{mark}"
        )


if __name__ == "__main__":
    sys.exit(main())
