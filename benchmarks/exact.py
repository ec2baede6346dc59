"""Exact products by integers beside cuBLAS: times after idle and in a row of calls, and errors.

    python -m benchmarks.exact --out docs/data/h200-exact.csv
    python -m benchmarks.exact --shape 4096x4096x4096 --precisions 7xint8 --cases 20 --seed 20261123

Shapes are MxNxK or BATCHxMxNxK: those of ``--shape``, or the suite, and ``--cases`` drawn with
``--seed`` (each of m, n and k log-uniform from 256 to 8192). Up to 8 moduli operands are
complex64, beyond complex128; cuBLAS computes both at the operands' own type, and where
``$GEMMUL8`` names its library (`benchmarks/peers/_gemmul8.cu`), GEMMul8 at the same moduli in its
fast mode. Every call of ours is the public function, into a place that was filled with NaN, from
interleaved row-major operands; ``--checked`` adds calls with ``check=True``. Each waits for its
proof, so calls after idle are timed by the host, and calls without it are waited for and timed
alike.

- idle: the median of ``--calls`` calls, 150 ms of rest before each, behind a held stream;
- in a row: calls for ``--seconds`` without a pause, which is what the card's power allows;
- error: ||C^ - C||_F / ||C||_F of sampled rows and columns against sums in 80-bit floating point,
  of normal numbers, and of uniform ones times e^(0.5 normal).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from argand import gemm, launched
from argand.device import gpu
from argand.gemm.modular.moduli import MODULAR_PRECISIONS
from argand.runtime.complex_types import PRECISION
from argand.runtime.measuring.timing import queued, queued_seconds

from benchmarks.gemm.shapes import SUITES, Shape
from benchmarks.harness.rows import write_rows
from benchmarks.peers import CannotRunError, _gemmul8
from workflow.versions import timestamp, versions

Row = dict[str, Any]
Array = np.ndarray[Any, Any]
PRECISIONS = ("7xint8", "8xint8", "15xint8", "16xint8")
_NARROW = 8
"""Most moduli whose operands are measured as complex64."""
_REST_SECONDS = 0.15
_CASE_SIZES = (256, 8192)
_SAMPLED_ROWS, _SAMPLED_COLUMNS = 16, 256
"""Results whose errors stand for all: 8 x 96 are off by up to 6% of the error of the whole."""
WAITED, CHECKED = "argand, waited for", "argand, checked"
OURS = ("argand", WAITED, CHECKED)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 where a product of ours is beyond its bound."""
    arguments = _arguments(argv)
    import cupy

    rows: list[Row] = []
    for shape in (*arguments.shape, *drawn(arguments.cases, arguments.seed)):
        for dtype in PRECISION:
            mine = [x for x in arguments.precisions if operand_type(x) == dtype]
            if not mine:
                continue
            for row in measured(cupy, shape, dtype, mine, arguments):
                rows.append(row)
                _show(row)
                if arguments.out is not None:
                    write_rows(arguments.out, rows)
            cupy.get_default_memory_pool().free_all_blocks()
    return int(any(row["implementation"] in OURS and not row["within_bound"] for row in rows))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--shape", type=Shape.parse, action="append", default=[])
    found.add_argument("--suite", choices=list(SUITES), help="where no --shape is given")
    found.add_argument("--cases", type=int, default=0, help="shapes that are drawn")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--precisions", nargs="+", choices=MODULAR_PRECISIONS, default=PRECISIONS)
    found.add_argument("--checked", action="store_true", help="calls with a proof too")
    found.add_argument("--calls", type=int, default=7, help="calls after idle")
    found.add_argument("--seconds", type=float, default=0.8, help="of calls in a row")
    found.add_argument("--out", type=Path, help="where the rows go, as CSV")
    arguments = found.parse_args(argv)
    if not arguments.shape:
        arguments.shape = list(SUITES.get(arguments.suite or "", ()))
    if not arguments.shape and not arguments.cases:
        arguments.shape = list(SUITES["gemm-exact"])
    return arguments


def operand_type(precision: str) -> str:
    """Return the type of operands that a precision is measured with."""
    return "complex64" if MODULAR_PRECISIONS[precision] <= _NARROW else "complex128"


def drawn(cases: int, seed: int) -> list[Shape]:
    """Return the shapes whose m, n and k are log-uniform."""
    low, high = np.log(_CASE_SIZES)
    sizes = np.exp(np.random.default_rng(seed).uniform(low, high, (cases, 3)))
    return [Shape(*(round(size) for size in row)) for row in sizes.tolist()]


def measured(
    cupy: Any, shape: Shape, dtype: str, precisions: Sequence[str], arguments: argparse.Namespace
) -> Iterator[Row]:
    """Yield a row of cuBLAS, then ours and GEMMul8's of each precision, on the same operands."""
    device = gpu(cupy.cuda.Device().id)
    operands = {
        kind: [make(cupy, (*shape.leading, *size), dtype, arguments.seed + side)
               for side, size in enumerate(((shape.m, shape.k), (shape.k, shape.n)))]
        for kind, make in KINDS.items()
    }  # fmt: skip
    references = {kind: Reference(*pair) for kind, pair in operands.items()}
    out = cupy.empty((*shape.leading, shape.m, shape.n), dtype)
    base: float | None = None
    for precision, name in _implementations(PRECISION[dtype], precisions, arguments.checked):
        errors, within = {}, True
        for kind, (a, b) in operands.items():
            out.fill(np.nan)
            with launched() as names:
                _call(name, a, b, out, precision)()
            errors[kind], excess = references[kind].errors(out, precision)
            # Its bound is ours: of other implementations nothing is claimed.
            within = within and (name not in OURS or excess <= 1)
        a, b = operands["normal"]
        call = _call(name, a, b, out, precision)
        idle, row = call_seconds(call, arguments.calls, arguments.seconds, waits=name in OURS[1:])
        base = base or row
        yield {
            "batch": shape.batch, "m": shape.m, "n": shape.n, "k": shape.k, "operands": dtype,
            "implementation": name, "precision": precision,
            "algorithm": "; ".join(names), "idle_ms": 1e3 * idle, "row_ms": 1e3 * row,
            "idle_tflops": shape.flops / idle / 1e12, "row_tflops": shape.flops / row / 1e12,
            "times_cublas": base / row, "error_normal": errors["normal"],
            "error_spread": errors["spread"], "within_bound": within, "seed": arguments.seed,
            "device": device.name, "versions": versions(), "timestamp": timestamp(),
        }  # fmt: skip


def _implementations(
    base: str, precisions: Sequence[str], checked: bool
) -> Iterator[tuple[str, str]]:
    """Yield precisions and who computes them: cuBLAS, then ours and, where it is there, GEMMul8."""
    yield base, "cublas"
    ours = OURS if checked else OURS[:1]
    try:
        _gemmul8.library()
        names = [*ours, "gemmul8"]
    except CannotRunError as error:
        print(error)
        names = [*ours]
    for precision in precisions:
        for name in names:
            yield precision, name


def _call(name: str, a: Any, b: Any, out: Any, precision: str) -> Callable[[], object]:
    if name == "gemmul8":
        return _gemmul8.product(a, b, out, MODULAR_PRECISIONS[precision])
    call = partial(gemm, a, b, precision=precision, out=out, check=name == CHECKED)
    return partial(_wait_for, call) if name == WAITED else call


def _wait_for(call: Callable[[], object]) -> None:
    import cupy

    call()
    cupy.cuda.get_current_stream().synchronize()


def call_seconds(
    call: Callable[[], Any], calls: int, seconds: float, *, waits: bool = False
) -> tuple[float, float]:
    """Return a call's seconds, which ``waits`` for its end or not, after idle and in a row."""
    queued_seconds([call], 3)
    idle = []
    for _ in range(calls):
        time.sleep(_REST_SECONDS)
        if waits:  # for a stream that must not be held
            begin = time.perf_counter()
            call()
            idle.append(time.perf_counter() - begin)
        else:
            idle += queued([call], 1, held=True).seconds
    first = queued_seconds([call], 3)
    count = max(5, round(seconds / median(first)))
    import cupy

    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    before.record()
    for _ in range(count):
        call()
    after.record()
    after.synchronize()
    return median(idle), 1e-3 * float(cupy.cuda.get_elapsed_time(before, after)) / count


def _normal(cupy: Any, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    real = "float32" if dtype == "complex64" else "float64"
    parts = cupy.random.default_rng(seed).standard_normal((*shape, 2), dtype=real)
    return parts.view(dtype)[..., 0]


def _spread(cupy: Any, shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    real = "float32" if dtype == "complex64" else "float64"
    rng = cupy.random.default_rng(seed)
    parts = rng.random((*shape, 2), dtype=real) - real_half(real)
    parts *= cupy.exp(real_half(real) * rng.standard_normal((*shape, 2), dtype=real))
    return parts.view(dtype)[..., 0]


def real_half(real: str) -> Any:
    """Return one half of a type, so that nothing is converted."""
    return np.dtype(real).type(0.5)


KINDS: dict[str, Callable[..., Any]] = {"normal": _normal, "spread": _spread}


class Reference:
    """Sampled rows and columns of the first product of a batch, in 80-bit floating point."""

    def __init__(self, a: Any, b: Any) -> None:
        left, right = (x[(0,) * (x.ndim - 2)] for x in (a, b))
        self._rows = np.unique(np.linspace(0, left.shape[0] - 1, _SAMPLED_ROWS).round()).astype(int)
        self._columns = np.unique(
            np.linspace(0, right.shape[1] - 1, _SAMPLED_COLUMNS).round()
        ).astype(int)
        rows = left[self._rows.tolist()].get().astype(np.clongdouble)
        columns = right[:, self._columns.tolist()].get().astype(np.clongdouble)
        self._k = rows.shape[1]
        self._exact = np.stack([(row[:, None] * columns).sum(axis=0) for row in rows])
        norms = [np.sqrt((np.abs(x) ** 2).sum(axis=axis)) for x, axis in ((rows, 1), (columns, 0))]
        self._sizes = np.outer(*norms)

    def errors(self, out: Any, precision: str) -> tuple[float, float]:
        """Return relative Frobenius errors, and exact products' worst error over its bound."""
        found = out[(0,) * (out.ndim - 2)][self._rows.tolist()][:, self._columns.tolist()].get()
        roundoff = 2.0 ** (-24 if found.dtype == np.complex64 else -53)
        off = np.abs(found.astype(np.clongdouble) - self._exact)
        relative = float(np.sqrt((off**2).sum() / (np.abs(self._exact) ** 2).sum()))
        if precision not in MODULAR_PRECISIONS:
            return relative, 0.0
        from argand.gemm.modular.moduli import moduli

        truncation = moduli(MODULAR_PRECISIONS[precision]).relative_truncation(self._k)
        # Each part is rounded once; what 80 bits lose of the sum is far below both.
        bound = truncation * self._sizes + np.sqrt(2) * roundoff * np.abs(found)
        bound += self._k * 2.0**-63 * self._sizes
        return relative, float((off / bound).max())


def _show(row: Row) -> None:
    size = "x".join(str(row[name]) for name in ("batch", "m", "n", "k"))
    print(
        f"{size:24} {row['implementation']:15} {row['precision']:8} idle {row['idle_ms']:9.3f} ms "
        f"{row['idle_tflops']:6.1f} | in a row {row['row_ms']:9.3f} ms {row['row_tflops']:6.1f} "
        f"TFLOP/s, {row['times_cublas']:5.2f} x cuBLAS | error {row['error_normal']:.2e} "
        f"{row['error_spread']:.2e} {'' if row['within_bound'] else 'BEYOND ITS BOUND '}"
        f"{row['algorithm']}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
