"""Softmax: ours at each precision and the libraries beside it, in one run.

    python -m benchmarks.softmax --shape 4096x32768 --precisions fp32,fp16 --csv out.csv

A shape is rows x columns. Every result is checked against SciPy in fp64, on all rows up to a
budget and else on rows spread over the result; all of it must be finite.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, softmax
from argand.ceilings import measure_ceilings
from scipy import special

from benchmarks.measuring import (
    Bench,
    Candidate,
    Work,
    array_module,
    chosen,
    chosen_device,
    parser,
)
from benchmarks.rows import Report
from workflow.accuracy import Accuracy, assess_softmax, softmax_reference

PEERS = ("scipy", "torch")
_CHECKED_VALUES = 1 << 24
"""Values compared with fp64 at most: a second of SciPy."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    arguments = _parser().parse_args(argv)
    device = chosen_device(arguments.device)
    bench = Bench.of(device, measure_ceilings(device), arguments)
    report = Report(arguments.csv)
    for rows, columns in arguments.shape:
        rng = np.random.default_rng(arguments.seed)
        x = arguments.scale * rng.standard_normal((rows, columns), dtype=np.float32)
        sample = sampled_rows(rows, columns)
        reference = softmax_reference(x[sample])
        assess = partial(check, reference, sample, device.backend)
        ours = [candidate(PRECISIONS[name], device) for name in arguments.precisions]
        every = [*ours, *chosen(available(device), arguments.peers)]
        report.add([bench.run(one, work(rows, columns, one.precision), [x], assess)
                    for one in every])  # fmt: skip
    return report.status


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__, PEERS)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    found.add_argument("--shape", type=_shape, action="append", required=True, help="ROWSxCOLUMNS")
    found.add_argument("--scale", type=float, default=4.0, help="standard deviation of the logits")
    return found


def _shape(text: str) -> tuple[int, int]:
    parts = text.split("x")
    if len(parts) != 2 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(
            f"shape must be ROWSxCOLUMNS of positive numbers, got {text!r}"
        )
    return int(parts[0]), int(parts[1])


def sampled_rows(rows: int, columns: int) -> np.ndarray[Any, Any]:
    """All rows up to the budget, else as many spread over them, first and last included."""
    count = min(rows, max(4, _CHECKED_VALUES // columns))
    return np.unique(np.linspace(0, rows - 1, count).astype(np.int64))


def check(
    reference: Any,
    sample: np.ndarray[Any, Any],
    backend: str,
    result: np.ndarray[Any, Any],
    candidate: Candidate,
) -> Accuracy:
    """Sampled rows against fp64; every element must be finite, so none was left unwritten."""
    found = assess_softmax(reference, result[sample], candidate.precision, backend=backend)
    bad = int(np.count_nonzero(~np.isfinite(result)))
    if len(sample) < len(result):
        found = replace(found, reference="sampled")
    if bad:
        found = replace(found, verified=False, reason=f"{bad} elements are not finite")
    return found


def work(rows: int, columns: int, precision: Precision) -> Work:
    """Each value read and written once; maximum, subtraction, exp, sum, division are 5 flops."""
    item = np.dtype(precision.real_output).itemsize
    values = rows * columns
    return Work({"rows": rows, "columns": columns}, 5 * values, 2 * item * values, "softmax")


def candidate(precision: Precision, device: Device) -> Candidate:
    """Our own softmax; its result's place is filled with NaN before."""
    arrays = array_module(device)
    dtype = precision.real_output

    def prepare(x: Any) -> tuple[Any, ...]:
        return arrays.array(x, dtype=dtype), arrays.full(x.shape, np.nan, dtype)

    def compute(x: Any, out: Any) -> Any:
        return softmax(x, precision=precision, out=out)

    return Candidate(
        "argand", precision, "tiled recurrence", prepare, compute,
        np.asarray if device.backend == "cpu" else arrays.asnumpy, input="real", output="real",
    )  # fmt: skip


def available(device: Device) -> list[Candidate]:
    """SciPy on the CPU; PyTorch on a GPU, where it is installed."""
    fp32 = PRECISIONS["fp32"]
    if device.backend == "cpu":
        compute = partial(special.softmax, axis=-1)
        return [
            Candidate("scipy", fp32, "special.softmax", _copied, compute, np.asarray,
                      input="real", output="real")
        ]  # fmt: skip
    if not find_spec("torch"):
        return []
    import torch

    return [
        Candidate(
            "torch", fp32, "softmax fp32", lambda x: (torch.from_numpy(x).cuda(),),
            lambda x: torch.softmax(x, -1), lambda x: x.cpu().numpy(), input="real", output="real",
        )
    ]  # fmt: skip


def _copied(x: Any) -> tuple[Any, ...]:
    return (x.copy(),)


if __name__ == "__main__":
    sys.exit(main())
