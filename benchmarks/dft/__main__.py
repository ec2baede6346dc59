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
from collections.abc import Sequence
from functools import partial

import numpy as np
from argand import PRECISIONS, Precision
from argand.runtime.measuring.ceilings import measure_ceilings

from benchmarks.dft.cases import SUITES, Case, samples
from benchmarks.dft.check import check, checked_rows
from benchmarks.dft.ours import candidate, compile_ours, ran
from benchmarks.harness.cases import add_cases, asked_cases
from benchmarks.harness.measuring import Bench, Work, chosen, chosen_device, parser
from benchmarks.harness.rows import Report
from benchmarks.harness.samples import on_host
from benchmarks.peers import benchmark_names, candidates
from workflow.accuracy.references import spectrum_reference


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
        rows = checked_rows(case)
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


def work(case: Case, precision: Precision) -> Work:
    """Read and written once; 5 N log2 N operations a transform, as is usual."""
    values = case.batch * case.length
    each = 32 if precision.output == "complex128" else 16
    sizes = {"batch": case.batch, "n": case.length}
    return Work(sizes, 5 * values * np.log2(max(2, case.length)), each * values, "dft")


if __name__ == "__main__":
    sys.exit(main())
