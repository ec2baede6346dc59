"""Softmax: ours at each precision and kind and the libraries beside it, in one run.

    python -m benchmarks.softmax --shape 4096x32768 --precisions fp32,fp16 --csv out.csv
    python -m benchmarks.softmax --suite h200 --precisions fp32 --rest 0.05 --csv out.csv

A shape is rows x columns. ``--kinds`` are the elements of x and of the result: fp32 at every
precision, the others at fp32; complex64 is read and its power taken. Every result is checked
against SciPy in fp64, on all rows up to a budget and else on rows spread over the result; all of it
must be finite.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from argand import PRECISIONS, Precision
from argand.runtime.measuring.ceilings import measure_ceilings
from argand.softmax.formats import ELEMENT_BYTES

from benchmarks.harness.cases import add_cases, asked_cases
from benchmarks.harness.measuring import Bench, Work, chosen, chosen_device, parser
from benchmarks.harness.rows import Report
from benchmarks.peers import benchmark_names, candidates
from benchmarks.softmax.cases import KINDS, SUITES, Case, logits
from benchmarks.softmax.check import check, checked_rows, sampled_reference
from benchmarks.softmax.ours import candidate


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    found = _parser()
    arguments = found.parse_args(argv)
    shapes = (
        Case(rows, columns, kind) for rows, columns in arguments.shape for kind in arguments.kinds
    )
    cases = asked_cases(found, arguments, shapes, SUITES)
    device = chosen_device(arguments.device)
    bench = Bench.of(device, measure_ceilings(device), arguments)
    report = Report(arguments.csv)
    for case in cases:
        x = logits(case, arguments.seed, arguments.scale, device)
        sample = checked_rows(case)
        reference, lost = sampled_reference(case, x, sample)
        assess = partial(check, reference, sample, device.backend, kind=case.output, lost=lost)
        precisions = arguments.precisions if case.kind == "fp32" else ["fp32"]
        ours = [candidate(PRECISIONS[name], device, case) for name in precisions]
        peers = candidates("softmax", device.backend, kind=case.kind, output=case.output)
        every = [*chosen(peers, arguments), *ours]
        report.add(bench.run(one, work(case, one.precision), [x], assess) for one in every)
    return report.status


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__, benchmark_names("softmax"))
    add_cases(found, "ROWSxCOLUMNS", SUITES, suite="2^29 elements at many widths and kinds")
    found.add_argument(
        "--kinds", type=_kinds, default=["fp32"], help=f"of {', '.join(KINDS)}, with --shape"
    )
    found.add_argument("--scale", type=float, default=4.0, help="standard deviation of the logits")
    return found


def _kinds(text: str) -> list[str]:
    names = text.split(",")
    if any(name not in KINDS for name in names):
        raise argparse.ArgumentTypeError(f"kinds must be of {list(KINDS)}, got {text!r}")
    return names


def work(case: Case, precision: Precision) -> Work:
    """Return the work of reading and writing each value once, with 5 flops for each."""
    values = case.rows * case.columns
    if precision.real_output == "float64":
        each = 16
    else:
        each = ELEMENT_BYTES[case.kind] + ELEMENT_BYTES[case.output]
    sizes = {"rows": case.rows, "columns": case.columns}
    return Work(sizes, 5 * values, each * values, "softmax")


if __name__ == "__main__":
    sys.exit(main())
