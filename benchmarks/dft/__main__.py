"""Transforms: ours at each precision and the libraries beside it, in one run.

    python -m benchmarks.dft --shape 4096x127 --precisions 3xfp16,fp16 --csv out.csv
    python -m benchmarks.dft --suite h200 --precisions 3xfp16 --rest 0.05 --csv out.csv

A shape is batch x length. ``--ours`` has our own kernels run where the choice would take cuFFT.
Every result is checked against fp64, on all rows up to a budget and else on rows spread over the
result; all of it must be finite.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, dft
from argand.device import gpu, is_cuda_array
from argand.dft.heuristics import own_plan
from argand.dft.legality import wide_fits
from argand.dft.method import is_prime, method_for
from argand.dft.plan import Plan, dft_source
from argand.dft.plan_words import plan_words
from argand.dft.problem import DftProblem
from argand.dft.tuned import chosen as chosen_plan
from argand.runtime.ceilings import measure_ceilings
from argand.runtime.compiler import compile_all

from benchmarks.harness.cases import add_cases, asked_cases
from benchmarks.harness.measuring import (
    Bench,
    Work,
    array_module,
    chosen,
    chosen_device,
    parser,
)
from benchmarks.harness.rows import Report
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, CannotRunError, benchmark_names, candidates
from workflow.accuracy import Accuracy, spectrum_reference
from workflow.transforms import algorithm, assess_transform

_CHECKED_VALUES, _CHECKED_ROWS = 1 << 20, 1 << 12
"""Numbers and transforms compared with fp64 at most; at least four transforms are."""
_VALUES = 1 << 27


@dataclass(frozen=True)
class Case:
    """Transforms of one length."""

    batch: int
    length: int


SUITES = {
    "h200": [
        Case(_VALUES // length, length)
        for length in (
            16, 32, 64, 97, 100, 127, 128, 251, 256, 360, 509, 512, 1000, 1009, 1024, 2039, 2048,
            4093, 4096, 8191, 8192, 10_007, 12_000, 16_384, 32_768, 65_536, 131_072, 1 << 20,
        )
    ],
    "primes": [
        Case(_VALUES // length, length) for length in range(67, 510) if is_prime(length)
    ],
    "awkward": [
        Case(_VALUES // length, length)
        for length in (
            254, 262, 508, 762, 899, 1018, 1517, 2018, 3022, 4078, 5003, 8186, 10_609, 12_013,
            13_003, 14_009, 16_382, 20_011, 20_014, 30_011, 57_337, 65_537, 100_003, 262_139,
            524_287, 1_000_003, 1_048_573,
        )
    ],
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    found = _parser()
    arguments = found.parse_args(argv)
    cases = asked_cases(found, arguments, (Case(*shape) for shape in arguments.shape), SUITES)
    device = chosen_device(arguments.device)
    bench = Bench.of(device, measure_ceilings(device), arguments)
    report = Report(arguments.csv)
    if device.backend == "cuda":
        compile_ours(cases, [PRECISIONS[name] for name in arguments.precisions], arguments.ours)
    for case in cases:
        x = samples(case, arguments.seed, device)
        rows = sampled_rows(case.batch, max(4, min(_CHECKED_ROWS, _CHECKED_VALUES // case.length)))
        reference = spectrum_reference(on_host(x[rows]))
        assess = partial(
            check, reference, rows, device.backend, partial(ran, device, case, arguments.ours)
        )
        ours = [
            candidate(PRECISIONS[name], device, case, ours=arguments.ours)
            for name in arguments.precisions
        ]
        every = [*chosen(candidates("dft", device.backend), arguments), *ours]
        report.add(bench.run(one, work(case, one.precision), [x], assess) for one in every)
    return report.status


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__, benchmark_names("dft"))
    add_cases(found, "BATCHxLENGTH", SUITES, suite="2^27 elements at many lengths")
    found.add_argument("--ours", action="store_true", help="our kernels in place of cuFFT's")
    return found


def compile_ours(cases: Sequence[Case], precisions: Sequence[Precision], ours: bool) -> None:
    """All kernels of ours before anything is measured, by all cores."""
    arch = gpu(0).require_arch()
    jobs = []
    for case, precision in product(cases, precisions):
        if precision.exact_operands:
            continue
        plan = running(case, precision, gpu(0), ours)
        if plan is not None:
            jobs.append((dft_source(plan, precision), arch.target))
    compile_all(jobs)


def running(case: Case, precision: Precision, device: Device, ours: bool) -> Plan | None:
    """The plan of a case, None where cuFFT computes it."""
    if not ours:
        problem = DftProblem(case.batch, case.length, False, "backward", precision)
        return chosen_plan(problem, device).plan
    method = method_for(case.length)
    wide = wide_fits(method.kind, case.length, case.length)
    return own_plan(method, precision, device.require_arch(), wide=wide)


def ran(device: Device, case: Case, ours: bool, candidate: Candidate) -> str:
    """The plan that decides the bound of a result, in words: of ours on a GPU, and no library's."""
    precision = candidate.precision
    if candidate.name != "argand" or precision.exact_operands or device.backend == "cpu":
        return ""
    return plan_words(running(case, precision, device, ours))


def samples(case: Case, seed: int, device: Device) -> Any:
    """x of a case on its device, complex64 normal."""
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    parts = rng.standard_normal((case.batch, case.length, 2), dtype=arrays.float32)
    return parts.view(arrays.complex64)[..., 0]


def check(
    reference: Any,
    rows: np.ndarray[Any, Any],
    backend: str,
    ran: Callable[[Candidate], str],
    result: Any,
    candidate: Candidate,
) -> Accuracy:
    """Sampled rows against fp64, by the bound of the plan that ran.

    Every element must be finite, so none was left unwritten.
    """
    given, precision = on_host(result[rows]), candidate.precision
    found = assess_transform(reference, given, precision, backend=backend, ran=ran(candidate))
    if len(rows) < len(result):
        found = replace(found, reference="sampled")
    # A sum of squares is finite where all of them are, and takes no memory of the result's size.
    flat = result.reshape(-1)
    power = sum(
        float(abs(array_dot(flat[start : start + (1 << 24)])))
        for start in range(0, len(flat), 1 << 24)
    )
    if not np.isfinite(power):
        found = replace(found, verified=False, reason="not every element is finite")
    return found


def array_dot(x: Any) -> Any:
    """The sum of |x|^2."""
    if not is_cuda_array(x):
        return np.vdot(x, x)
    import cupy

    return cupy.vdot(x, x)


def work(case: Case, precision: Precision) -> Work:
    """Read and written once; 5 N log2 N operations a transform, as is usual."""
    values = case.batch * case.length
    each = 32 if precision.output == "complex128" else 16
    sizes = {"batch": case.batch, "n": case.length}
    return Work(sizes, 5 * values * np.log2(max(2, case.length)), each * values, "dft")


def candidate(precision: Precision, device: Device, case: Case, *, ours: bool = False) -> Candidate:
    """`argand.dft`; its result's place is filled with NaN before."""
    arrays = array_module(device)
    context: Any = partial(_own_plan, precision, case) if ours else nullcontext

    def prepare(x: Any) -> tuple[Any, ...]:
        given = x.astype(precision.output)
        return given, arrays.full(given.shape, np.nan, precision.output)

    def compute(x: Any, out: Any) -> Any:
        with context():
            return dft(x, precision=precision, out=out)

    def said(x: Any, out: Any) -> str:
        if device.backend == "cpu":
            return ""
        from argand.dft.gpu import plan_of

        with context():
            return str(plan_of(x, precision=precision, out=out))

    method = ""
    if device.backend == "cpu":
        method, _ = algorithm(case.batch, case.length, precision, device)
    return Candidate(
        "argand", precision, method, prepare, compute, chosen=said,
        input=precision.output, output=precision.output,
    )  # fmt: skip


@contextmanager
def _own_plan(precision: Precision, case: Case) -> Iterator[None]:
    """Our own kernel runs, also where cuFFT is faster. Raises CannotRunError without one."""
    from argand.dft.gpu import forced

    plan = running(case, precision, gpu(0), ours=True)
    if plan is None:
        raise CannotRunError("no kernel of ours has this length")
    with forced.to(plan):
        yield


if __name__ == "__main__":
    sys.exit(main())
