"""Complex products: ours at each precision and the libraries beside them, in one run.

    python -m benchmarks.gemm --shape 4096x4096x4096 --precisions tf32,3xtf32 --csv out.csv

A shape is m x n x k. Operands are normal, complex64 (complex128 at fp64). Every result is checked
against SciPy in fp64: all elements finite, a Freivalds check over all of them, rows one by one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, gemm
from argand.ceilings import measure_ceilings

from benchmarks.gemm_peers import PEERS, available
from benchmarks.measuring import (
    Candidate,
    Report,
    Work,
    array_module,
    chosen,
    chosen_device,
    parser,
    run,
)
from workflow.accuracy import assess_product, product_reference


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    arguments = _parser().parse_args(argv)
    device = chosen_device(arguments.device)
    ceilings = measure_ceilings(device)
    report = Report(arguments.csv)
    for m, n, k in arguments.shape:
        operands = random_operands(arguments.batch, m, n, k, arguments.seed)
        reference = product_reference(*operands, seed=arguments.seed)
        assess = partial(assess_product, reference, backend=device.backend)
        ours = [candidate(PRECISIONS[name], device) for name in arguments.precisions]
        every = [*ours, *chosen(available(device), arguments.peers)]
        report.add([
            run(one, work(arguments.batch, m, n, k, one.precision), operands, assess, device,
                ceilings, arguments)
            for one in every
        ])  # fmt: skip
    return report.status


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__, PEERS)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("--shape", type=_shape, action="append", required=True, help="MxNxK")
    found.add_argument("--batch", type=int, default=1)
    return found


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split("x")
    if len(parts) != 3 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"shape must be MxNxK of positive numbers, got {text!r}")
    m, n, k = (int(part) for part in parts)
    return m, n, k


def random_operands(batch: int, m: int, n: int, k: int, seed: int) -> tuple[Any, Any]:
    """(batch, m, k) and (batch, k, n), complex64, normal; without a batch axis where it is 1."""
    rng = np.random.default_rng(seed)
    leading = () if batch == 1 else (batch,)
    a, b = (
        rng.standard_normal((*leading, *shape, 2), dtype=np.float32).view(np.complex64)[..., 0]
        for shape in ((m, k), (k, n))
    )
    return a, b


def work(batch: int, m: int, n: int, k: int, precision: Precision) -> Work:
    """8 batch m n k flops; each operand read and the result written once, in its type."""
    item = np.dtype(precision.output).itemsize
    elements = batch * (m * k + k * n + m * n)
    return Work({"batch": batch, "m": m, "n": n, "k": k}, 8 * batch * m * n * k,
                item * elements, "gemm")  # fmt: skip


def candidate(precision: Precision, device: Device) -> Candidate:
    """Our own product; its result's place is filled with NaN before each computation."""
    arrays = array_module(device)
    if device.backend == "cpu":
        from argand.numpy_backend import gemm_algorithm
    else:
        from argand.cuda_backend import gemm_algorithm

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        left, right = (arrays.array(x, dtype=precision.output) for x in (a, b))
        shape = (*a.shape[:-1], b.shape[-1])
        return left, right, arrays.full(shape, np.nan, precision.output)

    def compute(a: Any, b: Any, out: Any) -> Any:
        return gemm(a, b, precision=precision, out=out)

    return Candidate(
        "argand", precision, gemm_algorithm(precision), prepare, compute,
        np.asarray if device.backend == "cpu" else arrays.asnumpy,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
