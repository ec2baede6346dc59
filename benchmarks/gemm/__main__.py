"""Complex products: ours at each precision and the libraries beside them, in one run.

    python -m benchmarks.gemm --suite gemm-large --csv h200-gemm-large.csv --ceilings ceilings.json
    python -m benchmarks.gemm --shape 4096x4096x4096 --shape 256x64x4096x64 --precisions tf32

A shape is MxNxK or BATCHxMxNxK. Operands are normal. Every result is checked against SciPy in fp64
(`benchmarks.gemm.product_check`), and beside every row on a GPU stands cuBLAS's real rate of the
same operand type, measured right after it for the same time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from argand import PRECISIONS
from argand.runtime.measuring.ceilings import measure_ceilings

from benchmarks.gemm import ours as gemm_ours
from benchmarks.gemm.operands import random_operands
from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import SUITES, Shape
from benchmarks.harness.cases import add_cases, asked_cases
from benchmarks.harness.measuring import Bench, Work, chosen, chosen_device, parser
from benchmarks.harness.rows import Report
from benchmarks.peers import Candidate, benchmark_names, candidates
from workflow.storage.files import atomic_text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    arguments = _arguments(argv)
    device = chosen_device(arguments.device)
    ceilings = measure_ceilings(device)
    if arguments.ceilings:
        atomic_text(arguments.ceilings, ceilings.to_json())
    bench = Bench.of(device, ceilings, arguments)
    ours = [
        one
        for one in gemm_ours.candidates(device, [PRECISIONS[x] for x in arguments.precisions])
        if one.input in arguments.inputs or one.input == "complex128"
    ]
    peers = chosen(candidates("gemm", device.backend), arguments)
    report = Report(arguments.csv)
    for shape in arguments.shape:
        a, b = random_operands(shape, arguments.seed)
        check = ProductCheck(shape, a, b, backend=device.backend, seed=arguments.seed)
        if device.backend == "cuda":
            import cupy

            a, b = cupy.asarray(a), cupy.asarray(b)
            gemm_ours.call_once(ours, a, b)
        report.add(
            bench.run(one, work(shape, one), (a, b), check.assess, sampled=check.taken)
            for one in (*peers, *ours)
        )
    return report.status


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    found = parser(__doc__, benchmark_names("gemm"))
    add_cases(
        found, "MxNxK or BATCHxMxNxK", SUITES,
        suite="large, batched or small products, or all", parse=Shape.parse,
    )  # fmt: skip
    found.add_argument(
        "--inputs", nargs="+", choices=gemm_ours.INPUTS, default=list(gemm_ours.INPUTS),
        help="what ours is given, where it is not complex128",
    )  # fmt: skip
    found.add_argument("--ceilings", type=Path, help="where the measured ceilings go, as JSON")
    arguments = found.parse_args(argv)
    arguments.shape = asked_cases(found, arguments, arguments.shape, SUITES)
    return arguments


def work(shape: Shape, candidate: Candidate) -> Work:
    """Return 8 batch m n k flops; each operand read and the result written once, in its type."""
    precision = candidate.precision
    whole = 16 if precision.output == "complex128" else 8
    half = 2 * precision.operand.bytes
    packed = half * precision.terms
    a_bytes = {"complex-half": half, "planar": half}.get(candidate.input, whole)
    b_bytes = {"packed": packed}.get(candidate.input, a_bytes)
    out_bytes = half if candidate.output == "complex-half" else whole
    m, n, k = shape.m, shape.n, shape.k
    moved = shape.batch * (a_bytes * m * k + b_bytes * k * n + out_bytes * m * n)
    return Work({"batch": shape.batch, "m": m, "n": n, "k": k}, shape.flops, moved, "gemm")


if __name__ == "__main__":
    sys.exit(main())
