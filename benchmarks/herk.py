"""Hermitian products: ours, our own full product, cuBLAS's cherk and full product, in one run.

    python -m benchmarks.herk --shape 64x2048x4096 --csv out.csv
    python -m benchmarks.herk --shape 64x2048x4096 --precisions exact --form triangle

A shape is batch x inputs x samples: V = X X^H of X (batch, inputs, samples). Every call is a public
function of argand: `herk`, and `gemm` with ``op_b="C"`` for the full product; that of cuBLAS is
`gemm` at fp32, its cherk `herk` at fp32. ``tflops`` count the useful half, 4 n (n + 1) k a matrix,
for all of them alike. On a GPU ``fraction_of_real`` is that rate, times the products of terms, over
that of cuBLAS's real product of the operand format at 8192^3, measured right after the call.
Sampled rows of two matrices are compared with fp64, those of integers exactly, and with the columns
that mirror them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import Device, gemm, herk, launched, pairs
from argand.herk.problem import FORMS, Form
from argand.precision import PRECISIONS

from benchmarks.harness.conditions import RealRates
from benchmarks.harness.measuring import array_module, release
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from workflow.accuracy import bounds

EXACT = "exact"
_SAMPLED_ROWS = 5


@dataclass(frozen=True, kw_only=True)
class HerkRow(WholeCall):
    """One implementation at one precision.

    Attributes:
        batch, n, k: of X.
        form: of the result; of full products ``full``.
        implementation: ``argand``, ``argand full``, ``cublas`` (cherk) or ``cublas full``.
        input: ``complex64``, or ``int8`` pairs.
        tflops: 4 n (n + 1) k of every matrix over the median time, for all alike.
        fraction_of_real: see the module; None on the CPU.
        speedup: the time of the full product of the same library and precision over this one's.
        error: the largest of sampled elements, over |x_i| |x_j| summed; 0 where exact.
        verified: whether it is within the worst-case bound, and columns are conjugates of rows.
    """

    batch: int
    n: int
    k: int
    form: str
    implementation: str
    precision: str
    input: str
    algorithm: str
    tflops: float
    fraction_of_real: float | None
    speedup: float | None
    error: float
    verified: bool


@dataclass(frozen=True)
class _Case:
    implementation: str
    precision: str
    form: Form
    call: Callable[[Any, Any], Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a result of ours was wrong."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "herk")
    device = clock.device
    rates = RealRates(device)
    for batch, n, k in arguments.shape:
        for precision in arguments.precisions:
            x = _operand(device, (batch, n, k), precision, arguments.seed)
            full: dict[str, float] = {}
            for case in _cases(precision, arguments.form, device):
                row = _measured(case, x, (batch, n, k), arguments.seconds, clock, rates, full)
                table.add([row], _line(row))
            del x
            release(device)
    return table.status("verified", "argand", "argand full")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--shape", type=_shape, nargs="+", default=[(64, 2048, 4096)])
    found.add_argument(
        "--precisions", nargs="+", choices=[EXACT, *PRECISIONS],
        default=[EXACT, "fp32", "tf32", "3xfp16"],
    )  # fmt: skip
    found.add_argument("--form", choices=FORMS, default="full", help="of the results of herk")
    add_arguments(found, seconds=1.0, rest=0.3, peers=False)
    return found


def _shape(text: str) -> tuple[int, int, int]:
    batch, n, k = (int(part) for part in text.split("x"))
    return batch, n, k


def _cases(precision: str, form: Form, device: Device) -> Iterator[_Case]:
    """Yield the full product first, over whose time the others' speedups are."""
    library = "cublas" if device.backend == "cuda" else "blas"
    name = library if precision in ("fp32", "fp64") else "argand"

    def whole(x: Any, out: Any) -> Any:
        return gemm(x, x, op_b="C", precision=precision, out=out)

    def half(x: Any, out: Any) -> Any:
        return herk(x, precision=precision, form=form, out=out)

    yield _Case(f"{name} full", precision, "full", whole)
    yield _Case(name, precision, form, half)


def _operand(device: Device, shape: tuple[int, int, int], precision: str, seed: int) -> Any:
    """Return normal numbers, or integers of 8 bits as receivers give them, drawn by matrix."""
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    if precision == EXACT:
        parts = arrays.empty((*shape, 2), np.int8)
        for matrix in parts:
            matrix[...] = rng.integers(-128, 128, matrix.shape)
        return pairs(parts)
    found = arrays.empty(shape, PRECISIONS[precision].output)
    for matrix in found:
        drawn = rng.standard_normal((*matrix.shape, 2), dtype=np.float32)
        matrix[...] = drawn.view(np.complex64)[..., 0]
    return found


def _measured(
    case: _Case, x: Any, shape: tuple[int, int, int], seconds: float, clock: Clock,
    rates: RealRates, full: dict[str, float],
) -> HerkRow:  # fmt: skip
    (batch, n, k), device = shape, clock.device
    arrays, exact = array_module(device), case.precision == EXACT
    dtype = "complex64" if exact else PRECISIONS[case.precision].output
    size = (batch, n, n) if case.form == "full" else (batch, n * (n + 1) // 2)
    out = arrays.full(size, complex(np.nan, np.nan), dtype)
    with launched() as names:
        case.call(x, out)
    error, verified = _checked(case, x, out, device)
    columns = clock.timed(lambda: case.call(x, out), ours=case.implementation.startswith("argand"))
    time_us = columns["time_us_p50"]
    tflops = 4 * batch * n * (n + 1) * k / time_us / 1e6
    whole = full.setdefault("time", time_us)
    row = None if exact else PRECISIONS[case.precision]
    real = rates.tflops("int8" if row is None else row.operand.name, seconds)
    products = 1 if row is None else len(row.products)
    return HerkRow(
        batch=batch, n=n, k=k, form=case.form, implementation=case.implementation,
        precision=case.precision, input="int8" if exact else dtype, algorithm="; ".join(names),
        tflops=tflops, fraction_of_real=tflops * products / real if real else None,
        speedup=None if case.implementation.endswith("full") else whole / time_us,
        error=error, verified=verified, **columns,
    )  # fmt: skip


def _checked(case: _Case, x: Any, out: Any, device: Device) -> tuple[float, bool]:
    """Return the largest error of sampled rows of the first and last matrix, and the verdict."""
    exact = case.precision == EXACT
    parts = x.array if exact else x
    batch, n = parts.shape[:2]
    arrays = array_module(device)
    rows = arrays.asarray(np.unique(np.linspace(0, n - 1, _SAMPLED_ROWS).astype(int)))
    worst, verified = 0.0, True
    for index in dict.fromkeys((0, batch - 1)):
        matrix = parts[index]
        matrix = matrix[..., 0] + 1j * matrix[..., 1].astype(np.float64) if exact else matrix
        wide = matrix.astype(np.complex128)
        expected = wide[rows] @ wide.conj().T
        size = abs(wide[rows]) @ abs(wide).T
        found, mirrored = _rows(out[index], rows, arrays.arange(n), case.form)
        if exact:
            verified &= bool((found == expected.astype(found.dtype)).all())
        worst = max(worst, float((abs(found - expected) / size).max()))
        if case.form == "full" and not case.implementation.endswith("full"):
            verified &= bool((mirrored == found.conj()).all())
    if exact:
        return (0.0, True) if verified else (worst, False)
    row = PRECISIONS[case.precision]
    # The bound is of each part; a scaled line of normal numbers loses less than 2^-20 of it.
    bound = bounds.product_bound(row, parts.shape[2], device.backend) + 2.0**-20 * row.scaled
    return worst, verified and worst <= 2**0.5 * bound


def _rows(matrix: Any, rows: Any, columns: Any, form: Form) -> tuple[Any, Any]:
    """Return rows of a result, and its columns of these numbers as rows, of all ``columns``."""
    if form == "full":
        return matrix[rows], matrix[:, rows].T
    above = rows[:, None] < columns
    high = rows[:, None] * ~above + columns * above
    low = rows[:, None] + columns - high
    at = high * (high + 1) // 2 + low
    found = matrix[at.ravel()].reshape(at.shape)
    found[above] = found[above].conj()
    return found, found


def _line(row: HerkRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f} of full"
    real = "" if row.fraction_of_real is None else f" {row.fraction_of_real:6.1%} of real"
    verdict = "" if row.verified else "  WRONG"
    return (
        f"{row.batch:4} x {row.n} x {row.k} {row.form:8} {row.implementation:12} "
        f"{row.precision:7} {1e-3 * row.time_us_p50:9.3f} ms {row.tflops:8.2f} TFLOP/s{real}"
        f"{faster}  error {row.error:.1e}{verdict}  {row.algorithm}"
    )


if __name__ == "__main__":
    sys.exit(main())
