"""Tuning: times every candidate plan of a product on the GPU at hand and keeps the fastest."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, get_args

from argand.device import DeviceError, gpu
from argand.gemm.api import gemm
from argand.gemm.candidates import candidates, candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import estimate
from argand.gemm.operands import OPS, Op, Side
from argand.gemm.pack.api import pack
from argand.gemm.pairs import to_pairs
from argand.gemm.problem import GemmProblem, OperandKind, Output, gemm_problem
from argand.precision import HALF_FORMATS, ROUNDED_PRECISIONS, Precision, get_precision
from argand.runtime.compile.loading import NotLaunchedError, compiling_only
from argand.runtime.measuring.timing import queued
from argand.runtime.plan import PlanError
from argand.runtime.plans.tuning import ranked, require_gpu

Measured = list[tuple[GemmChoice, float]]
"""Candidate plans of a product with their microseconds, the fastest first."""


def tune(
    a_shape: tuple[int, ...],
    b_shape: tuple[int, ...],
    *,
    precision: str | Precision,
    op_a: Op = "N",
    op_b: Op = "N",
    output: Output | None = None,
    a_format: OperandKind = "complex",
    b_format: OperandKind = "complex",
    keep: bool = True,
) -> Measured:
    """Time every candidate plan of a product on the current GPU and keep the fastest.

    From then on `gemm` takes it for products of about these sizes (each in the same quarter of an
    octave) whose operands lie in memory alike, in this process and in later ones, until the card,
    its driver or the kernels change. Kernels not used before are compiled, on all cores.

    Args:
        a_shape, b_shape: shapes of the operands as they are stored, before their op; they are made
            of random numbers, row-major, and stay in the cache where they fit into it.
        precision, op_a, op_b, output: as in `argand.gemm`; fp64 and fp32 have no choice.
        a_format, b_format: ``complex`` (complex64), ``packed`` (by `argand.pack`), or ``fp16`` and
            ``bf16`` (`Pairs`) at the precision of that name.
        keep: False times only, and later products are planned as before.

    Returns:
        Each candidate and the median of its time in microseconds, conversions included, the
        fastest first. Candidates that are three times slower in the first call are called once.

    Raises:
        ValueError: shapes that do not fit or are empty, a precision without a choice, a format
            that it does not read.
        DeviceError: no GPU answers.
        OSError: the table cannot be written.

    Example:
        >>> argand.tune((4096, 4096), (4096, 4096), precision="tf32")  # doctest: +SKIP
    """
    problem = _tunable(a_shape, b_shape, precision=precision, op_a=op_a, op_b=op_b, output=output,
                       a_format=a_format, b_format=b_format)  # fmt: skip
    require_gpu()
    import cupy

    from argand.gemm import tuned

    device = gpu(cupy.cuda.Device().id)
    call = _call(problem, a_shape, b_shape)
    with tuned.trial(None) as trial:
        call()
    assert trial.question is not None
    question, sm_count = trial.question, device.sm_count
    posed = question, device.require_arch(), sm_count
    plans = sorted(
        [*candidates(*posed), *candidates_in_tf32(*posed)],
        key=lambda choice: estimate(choice, question, sm_count),
    )

    with compiling_only():
        for choice in plans:
            with tuned.trial(choice), suppress(NotLaunchedError, PlanError):
                call()

    def times(choice: GemmChoice, count: int) -> list[float]:
        with tuned.trial(choice):
            call()
            return [1e6 * seconds for seconds in queued([call], count, held=True).seconds]

    found = ranked(plans, times)
    if keep:
        tuned.TABLE.keep(device.index, {tuned.key(question): found[0][0]})
    return found


def _tunable(
    a_shape: tuple[int, ...],
    b_shape: tuple[int, ...],
    *,
    precision: str | Precision,
    op_a: Op,
    op_b: Op,
    output: Output | None,
    a_format: OperandKind,
    b_format: OperandKind,
) -> GemmProblem:
    """Return the product to time. Raises ValueError where it has no plan to choose."""
    row = get_precision(precision)
    if row.exact_operands:
        raise ValueError(
            f"precision must be one of {list(ROUNDED_PRECISIONS)}, got {row.name!r}: "
            "cuBLAS solves it"
        )
    allowed = ["complex", "packed"]
    if row.terms == 1 and row.operand.bytes == 2:
        allowed.append(row.operand.name)
    for name, value in (("a_format", a_format), ("b_format", b_format)):
        if value not in allowed:
            raise ValueError(f"{name} at {row.name} must be one of {allowed}, got {value!r}")
    problem = gemm_problem(
        a_shape, b_shape, precision=row, op_a=op_a, op_b=op_b, output=output,
        a_format=a_format, b_format=b_format,
    )  # fmt: skip
    if not problem.flops:
        raise ValueError(f"an empty product takes no time: a {a_shape}, b {b_shape}")
    return problem


def _call(
    problem: GemmProblem, a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> Callable[[], object]:
    """Return a call of the product of random operands of these shapes, as a user makes it."""
    row = problem.precision
    a, op_a = _operand(a_shape, problem.op_a, "a", row, problem.a_format)
    b, op_b = _operand(b_shape, problem.op_b, "b", row, problem.b_format)
    return lambda: gemm(a, b, op_a=op_a, op_b=op_b, precision=row, output=problem.output)


def _operand(
    shape: tuple[int, ...], op: Op, side: Side, precision: Precision, format: OperandKind
) -> tuple[Any, Op]:
    """Return normal random numbers in a format, and the op with which the product takes them."""
    import cupy

    numbers = cupy.random.default_rng(0 if side == "a" else 1)
    x = numbers.standard_normal((*shape, 2), dtype=cupy.float32).view(cupy.complex64)[..., 0]
    if format == "packed":
        return pack(x, precision, side=side, op=op), "N"
    return (x if format == "complex" else to_pairs(x, format)), op


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the products named on the command line; their table goes to standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m argand tune gemm",
        description="Measure the fastest plan of products on this GPU, and keep it.",
    )
    names = ",".join(ROUNDED_PRECISIONS)
    parser.add_argument("products", nargs="+", metavar="[BATCHx]MxNxK", type=_sizes)
    parser.add_argument("--precision", default=names, help=f"some of {names} (all)")
    parser.add_argument("--op-a", choices=OPS, default="N")
    parser.add_argument("--op-b", choices=OPS, default="N")
    parser.add_argument("--output", choices=["complex64", "complex-half"], default="complex64")
    formats = [
        name for name in get_args(OperandKind) if name in ("complex", "packed", *HALF_FORMATS)
    ]
    parser.add_argument("--a-format", choices=formats, default="complex")
    parser.add_argument("--b-format", choices=formats, default="complex")
    given = parser.parse_args(arguments)
    how = {name: getattr(given, name) for name in
           ("op_a", "op_b", "output", "a_format", "b_format")}  # fmt: skip
    work = [
        (sizes, precision, _shapes(sizes, given.op_a, given.op_b))
        for sizes in given.products
        for precision in given.precision.split(",")
    ]
    try:
        for _, precision, shapes in work:
            _tunable(*shapes, precision=precision, **how)
        require_gpu()
        rows = []
        for index, (sizes, precision, shapes) in enumerate(work):
            title = f"{'x'.join(map(str, sizes))} {precision}"
            print(f"[{index + 1}/{len(work)}] {title} ...", file=sys.stderr, flush=True)
            found = tune(*shapes, precision=precision, **how)
            best, time = found[0]
            print(f"    {time:.1f} us: {best.name}", file=sys.stderr, flush=True)
            rows.append(_row(sizes, precision, found))
    except (ValueError, DeviceError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print("\n".join([*_heading(), *rows]))
    return 0


def _sizes(text: str) -> tuple[int, ...]:
    """Parse batch, m, n and k of ``256x64x4096x64``, or m, n and k."""
    parts = text.split("x")
    if len(parts) not in (3, 4) or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(
            f"must be MxNxK or BATCHxMxNxK, positive integers, got {text!r}"
        )
    return tuple(int(part) for part in parts)


def _shapes(sizes: tuple[int, ...], op_a: str, op_b: str) -> list[tuple[int, ...]]:
    *batch, m, n, k = sizes
    a, b = (m, k), (k, n)
    return [(*batch, *(a if op_a == "N" else a[::-1])), (*batch, *(b if op_b == "N" else b[::-1]))]


def _heading() -> list[str]:
    """Return the card and versions of the measurements, their file, and the table's head."""
    import cupy

    from argand.gemm import tuned

    device = cupy.cuda.Device().id
    on = tuned.TABLE.measured_on(device)
    return [
        f"{on['device']}, {on['driver']}, kernels {on['kernels']}; {tuned.TABLE.path(device)}",
        "",
        "| product | precision | fastest | time (us) | TFLOP/s | next (us) | candidates |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]


def _row(sizes: tuple[int, ...], precision: str, found: Measured) -> str:
    best, time = found[0]
    following = f"{found[1][1]:.1f}" if len(found) > 1 else ""
    # 8 flops a complex multiply-add; flops a microsecond are 1e-6 TFLOP/s.
    rate = 8e-6 * math.prod(sizes) / time
    product = "x".join(map(str, sizes))
    return (
        f"| {product} | {precision} | {best.name} | {time:.1f} | {rate:.1f} | {following} "
        f"| {len(found)} |"
    )
