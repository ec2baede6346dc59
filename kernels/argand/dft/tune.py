"""Tuning of transforms: time the candidate plans on the current GPU and keep the fastest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from argand.device import Device, gpu
from argand.dft.api import dft
from argand.dft.candidates import best_of_each_kind, candidates
from argand.dft.few_rows import plan_of_few_rows
from argand.dft.legality import wide_fits
from argand.dft.method import check_length, method_for
from argand.dft.plan import Plan, dft_source
from argand.precision import ROUNDED_PRECISIONS, Precision, get_precision
from argand.runtime.compile.compiler import compile_all
from argand.runtime.measuring.timing import queued
from argand.runtime.plans.tuning import print_table, ranked, require_gpu, two_sizes

Measured = list[tuple[Plan | None, float]]
"""Plans, None for cuFFT, with their times in microseconds, the fastest first."""
MAX_PLANS = 4
"""Plans of a kind that are measured, by default."""


def tune_dft(
    rows: int,
    length: int,
    *,
    precision: str | Precision = "3xfp16",
    most: int = MAX_PLANS,
    keep: bool = True,
) -> Measured:
    """Time the best plans of a transform and cuFFT on the current GPU and keep the fastest.

    From then on transforms of this length and precision, of about ``rows`` rows (the same quarter
    of an octave; beyond 2^24 numbers any number of rows) and whose rows lie in memory as contiguous
    ones do, take it in this process and in later ones, until the card, its driver or the kernels
    change.

    Args:
        rows, length: the shape of contiguous random numbers.
        precision: as in `argand.dft`; fp64 and fp32 have no choice.
        most: plans of each kind that are measured, the best by estimate.
        keep: False times only, and later transforms are planned as before.

    Returns:
        Each plan and the median of its time in microseconds, the fastest first. Plans that are
        three times slower in the first call are called once only.

    Raises:
        ValueError: no rows, a length out of range, a precision without a choice.
        DeviceError: no GPU answers.
        OSError: the table cannot be written.

    Example:
        >>> argand.tune_dft(4096, 1018)  # doctest: +SKIP
    """
    row = get_precision(precision)
    check_length(length)
    if rows < 1 or most < 1:
        raise ValueError(f"rows and most must be positive, got {rows} and {most}")
    if row.exact_operands:
        raise ValueError(
            f"precision must be one of {list(ROUNDED_PRECISIONS)}, got {row.name!r}: "
            "cuFFT solves it"
        )
    require_gpu()
    import cupy

    from argand.dft import tuned
    from argand.dft.gpu import PLAN_OVERRIDE

    device = gpu(cupy.cuda.Device().id)
    arch = device.require_arch()
    plans = candidate_plans(rows, length, row, device, most)
    compile_all((dft_source(plan, row), arch.target) for plan in plans if plan is not None)
    rng = cupy.random.default_rng(0)
    x = rng.standard_normal((rows, 2 * length), dtype=cupy.float32).view(cupy.complex64)
    out = cupy.empty_like(x)

    def times(plan: Plan | None, count: int) -> list[float]:
        def call() -> object:
            return dft(x, precision=row, out=out)

        with PLAN_OVERRIDE.use(plan):
            call()
            return [1e6 * seconds for seconds in queued([call], count, held=True).seconds]

    found = ranked(plans, times)
    if keep:
        wide = wide_fits(method_for(length).kind, length, length)
        best = tuned.TunedDft.of(found[0][0])
        tuned.TABLE.keep(device.index, {tuned.key(rows, length, row, wide=wide): best})
    return found


def candidate_plans(
    rows: int, length: int, precision: Precision, device: Device, most: int = MAX_PLANS
) -> list[Plan | None]:
    """Return candidate plans of contiguous rows: None for cuFFT, and the best of each kind.

    Few rows have that of least latency too.
    """
    if length == 1:
        return [None]
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    every = candidates(method, precision, device.require_arch(), wide=wide)
    found = best_of_each_kind(every, most, precision)
    short = plan_of_few_rows(length, rows, device)
    if short is not None and short not in found:
        found.append(short)
    return [None, *found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the transforms named on the command line; their table goes to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m argand tune dft",
        description="Time the candidate plans of transforms on this GPU, and keep the fastest.",
    )
    parser.add_argument("shapes", nargs="+", metavar="ROWSxLENGTH", type=two_sizes("ROWSxLENGTH"))
    parser.add_argument("--precision", choices=ROUNDED_PRECISIONS, default="3xfp16")
    parser.add_argument("--most", type=int, default=MAX_PLANS, help="plans of a kind")
    given = parser.parse_args(arguments)

    def tuned(rows: int, length: int) -> list[tuple[str, float]]:
        found = tune_dft(rows, length, precision=given.precision, most=given.most)
        return [("cuFFT" if plan is None else str(plan), time) for plan, time in found]

    return print_table(parser.prog, "length", given.shapes, tuned)
