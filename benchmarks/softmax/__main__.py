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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, softmax
from argand.runtime.ceilings import measure_ceilings
from argand.softmax.formats import (
    COMPLEX_KINDS,
    ELEMENT_BYTES,
    REAL_KINDS,
    bf16_bits,
    bf16_values,
)

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
from benchmarks.peers import Candidate, benchmark_names, candidates
from workflow.accuracy import Accuracy, Rounded, assess_softmax, softmax_reference

KINDS = ("fp32", "fp16", "bf16", "complex64")
_CHECKED_VALUES = 1 << 19
"""Values compared with fp64 at most: an eighth of a second of SciPy for each candidate."""
_LEAST_ROWS = 2
_LOOKED_AT = 1 << 24
"""Values looked through at a time for those that are not finite."""
_ROUNDED = {
    "fp32": Rounded(), "fp16": Rounded(2.0**-11, 2.0**-25), "bf16": Rounded(2.0**-8, 2.0**-134),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Rows of one length, and the kind of their elements."""

    rows: int
    columns: int
    kind: str = "fp32"

    @property
    def output(self) -> str:
        """The kind of the result."""
        return "fp32" if self.kind in COMPLEX_KINDS else self.kind


_VALUES = 1 << 29
_WIDTHS = (
    256, 1000, 1024, 4096, 8192, 12289, 16384, 32768, 50257, 65536, 131072, 262144, 524288, 1 << 20,
)  # fmt: skip


def _wide(kind: str, widths: Sequence[int]) -> list[Case]:
    return [Case(_VALUES // columns, columns, kind) for columns in widths]


SUITES = {
    "h200": [
        *_wide("fp32", _WIDTHS), *(Case(rows, 1 << 20) for rows in (1, 8, 64)),
        *_wide("fp16", _WIDTHS),
        *_wide("complex64", (64, 256, 1024, 4096)),
        *_wide("bf16", _WIDTHS),
        *(case for kind in ("fp32", "fp16", "bf16") for case in _wide(kind, (16, 17, 33, 64))),
    ],
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a result of ours did not verify."""
    found = _parser()
    arguments = found.parse_args(argv)
    shapes = (Case(*shape, kind) for shape in arguments.shape for kind in arguments.kinds)
    cases = asked_cases(found, arguments, shapes, SUITES)
    device = chosen_device(arguments.device)
    bench = Bench.of(device, measure_ceilings(device), arguments)
    report = Report(arguments.csv)
    for case in cases:
        x = logits(case, arguments.seed, arguments.scale, device)
        sample = sampled_rows(case.rows, max(_LEAST_ROWS, _CHECKED_VALUES // case.columns))
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


def logits(case: Case, seed: int, scale: float, device: Device) -> Any:
    """x of a case on its device, normal; complex ones of standard deviation 1 a part."""
    size = (case.rows, case.columns)
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    if case.kind in COMPLEX_KINDS:
        parts = rng.standard_normal((*size, 2), dtype=arrays.float32)
        return parts.view(arrays.complex64)[..., 0]
    x = rng.standard_normal(size, dtype=arrays.float32)
    x *= arrays.float32(scale)
    if case.kind == "bf16":
        # On a GPU the upper halves: rounding would take memory that the largest cases do not leave.
        return bf16_bits(x) if arrays is np else (x.view("uint32") >> 16).astype("uint16")
    return x.astype(REAL_KINDS[case.kind], copy=False)


def sampled_reference(case: Case, x: Any, sample: Any) -> tuple[Any, float]:
    """The reference of some rows, and what rounding a power moves a result by, relatively."""
    rows = on_host(x[sample])
    if case.kind in COMPLEX_KINDS:
        power = np.abs(rows.astype(np.complex128)) ** 2
        return softmax_reference(power), 4 * 2.0**-24 * float(power.max())
    return softmax_reference(bf16_values(rows) if case.kind == "bf16" else rows), 0.0


def check(
    reference: Any,
    sample: np.ndarray[Any, Any],
    backend: str,
    result: Any,
    candidate: Candidate,
    *,
    kind: str = "fp32",
    lost: float = 0.0,
) -> Accuracy:
    """Sampled rows against fp64; every element must be finite, so none was left unwritten."""
    rows = on_host(result[sample])
    rounded = replace(_ROUNDED[kind], relative=_ROUNDED[kind].relative + lost)
    found = assess_softmax(
        reference, bf16_values(rows) if kind == "bf16" else rows, candidate.precision,
        backend=backend, rounded=rounded,
    )  # fmt: skip
    bad = _not_finite(result, kind)
    if len(sample) < len(result):
        found = replace(found, reference="sampled")
    if bad:
        found = replace(found, verified=False, reason=f"{bad} elements are not finite")
    return found


def _not_finite(result: Any, kind: str) -> int:
    """How many elements; row by row blocks, for want of memory beside the largest results."""
    bad = 0
    step = max(1, _LOOKED_AT // result.shape[1])
    for start in range(0, len(result), step):
        part = result[start : start + step]
        if kind == "bf16":
            bad += int(((part & 0x7F80) == 0x7F80).sum())
        else:
            bad += int((~(abs(part) <= np.finfo(part.dtype).max)).sum())
    return bad


def work(case: Case, precision: Precision) -> Work:
    """Each value read and written once; maximum, subtraction, exp, sum, division are 5 flops."""
    values = case.rows * case.columns
    if precision.real_output == "float64":
        each = 16
    else:
        each = ELEMENT_BYTES[case.kind] + ELEMENT_BYTES[case.output]
    sizes = {"rows": case.rows, "columns": case.columns}
    return Work(sizes, 5 * values, each * values, "softmax")


def candidate(precision: Precision, device: Device, case: Case | None = None) -> Candidate:
    """Our own softmax; its result's place is filled with NaN before."""
    arrays = array_module(device)
    case = case or Case(0, 0)
    wide = precision.real_output == "float64"
    output = "fp64" if wide else case.output

    def prepare(x: Any) -> tuple[Any, ...]:
        given = arrays.array(x, dtype="float64" if wide else x.dtype)
        out = arrays.empty(x.shape, REAL_KINDS[output])
        out[...] = 0xFFFF if output == "bf16" else np.nan
        return given, out

    def compute(x: Any, out: Any) -> Any:
        return softmax(
            x, precision=precision, power=case.kind in COMPLEX_KINDS, output=output, out=out,
            format="bf16" if case.kind == "bf16" else None,
        )  # fmt: skip

    return Candidate(
        "argand", precision, "tiled recurrence", prepare, compute,
        input=case.kind, output=case.output,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
