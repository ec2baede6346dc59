"""Tuning of softmaxes: time the candidate plans on the current GPU and keep the fastest."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from argand.checks import check_one_of
from argand.device import gpu
from argand.precision import PRECISIONS, Precision, get_precision
from argand.runtime.compile.compiler import compile_all
from argand.runtime.measuring.timing import queued
from argand.runtime.plan import PlanError
from argand.runtime.plans.tuning import print_table, ranked, require_gpu, two_sizes
from argand.softmax.candidates import SoftmaxCandidate, candidate_plans
from argand.softmax.formats import (
    COMPLEX_KINDS,
    ELEMENT_BYTES,
    OPERATIONS,
    REAL_KINDS,
    Operation,
    output_kind,
)
from argand.softmax.problem import SoftmaxProblem
from argand.softmax.source import softmax_source

Measured = list[tuple[SoftmaxCandidate, float]]
"""Candidates with their times in microseconds, the fastest first."""


def tune_softmax(
    rows: int,
    columns: int,
    *,
    operation: Operation = "softmax",
    precision: str | Precision = "fp32",
    input: str = "fp32",
    output: str | None = None,
    scale: float = 1.0,
    keep: bool = True,
) -> Measured:
    """Time every candidate plan of rows of this length on the current GPU, and keep the fastest.

    From then on softmaxes of about this length and number of rows (the same quarters of an octave),
    of these kinds and with rows that lie on boundaries of 16 bytes as these do, take that plan
    where it is legal, in this process and in later ones, until the card, its driver or the kernels
    change.

    Args:
        rows, columns: the shape of contiguous random numbers.
        operation: softmax, log_softmax or logsumexp.
        precision, output, scale: as in `argand.softmax`.
        input: fp64, fp32, fp16 or bf16, or complex64 and complex128, whose power is taken.
        keep: False times only, and later softmaxes are planned as before.

    Returns:
        Each candidate and the median of its time in microseconds, the fastest first. Candidates
        that are three times slower in the first call are called once only.

    Raises:
        ValueError: no rows or columns, an unknown precision or kind.
        DeviceError: no GPU answers.
        OSError: the table cannot be written.

    Example:
        >>> argand.tune_softmax(4096, 32768, input="fp16")  # doctest: +SKIP
    """
    problem = _problem(rows, columns, operation, get_precision(precision), input, output, scale)
    require_gpu()
    import cupy

    from argand.softmax import tuned
    from argand.softmax.gpu import PLAN_OVERRIDE, SoftmaxLaunch, form_of

    device = gpu(cupy.cuda.Device().id)
    arch = device.require_arch()
    x = _operand(input, rows, columns)
    out = cupy.empty(problem.result_shape, problem.result_type)
    form = form_of(problem, x, out)
    plans = candidate_plans(form, arch, device.sm_count, columns)
    compile_all((softmax_source(form, plan), arch.target) for plan in plans.values())
    calls: dict[SoftmaxCandidate, Callable[[], object]] = {}
    for candidate, plan in plans.items():
        with PLAN_OVERRIDE.use((plan, form.vector)):
            try:
                launch = SoftmaxLaunch(problem, x, out)
            except PlanError:  # its blocks do not fit on the device
                continue
        calls[candidate] = partial(launch, x.data.ptr, out.data.ptr)

    def times(candidate: SoftmaxCandidate, count: int) -> list[float]:
        calls[candidate]()
        return [1e6 * seconds for seconds in queued([calls[candidate]], count, held=True).seconds]

    found = ranked(calls, times)
    if keep:
        key = tuned.key(form, rows, columns)
        tuned.TABLE.keep(device.index, {key: found[0][0]})
    return found


def _problem(
    rows: int, columns: int, operation: Operation, precision: Precision, input: str,
    output: str | None, scale: float,
) -> SoftmaxProblem:  # fmt: skip
    if rows < 1 or columns < 1:
        raise ValueError(f"rows and columns must be positive, got {rows} and {columns}")
    check_one_of("operation", operation, OPERATIONS)
    check_one_of("input", input, ELEMENT_BYTES)
    return SoftmaxProblem(
        (rows, columns), operation, precision, input, output_kind(precision, output), scale
    )


def _operand(kind: str, rows: int, columns: int) -> Any:
    """Return normal random numbers on the GPU."""
    import cupy

    rng = cupy.random.default_rng(0)
    if kind in COMPLEX_KINDS:
        real = cupy.float64 if kind == "complex128" else cupy.float32
        return rng.standard_normal((rows, columns, 2), dtype=real).view(kind)[..., 0]
    x = rng.standard_normal((rows, columns), dtype=cupy.float32)
    if kind == "bf16":
        return (x.view(cupy.uint32) >> 16).astype(cupy.uint16)
    return x.astype(REAL_KINDS[kind], copy=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the softmaxes named on the command line; their table goes to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m argand tune softmax",
        description="Time the candidate plans of softmaxes on this GPU, and keep the fastest.",
    )
    parser.add_argument("shapes", nargs="+", metavar="ROWSxCOLUMNS", type=two_sizes("ROWSxCOLUMNS"))
    parser.add_argument("--operation", choices=OPERATIONS, default="softmax")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument("--input", choices=list(ELEMENT_BYTES), default="fp32")
    parser.add_argument("--output", choices=list(REAL_KINDS))
    given = parser.parse_args(arguments)
    how = {name: getattr(given, name) for name in ("operation", "precision", "input", "output")}
    return print_table(parser.prog, "columns", given.shapes, partial(tune_softmax, **how))
