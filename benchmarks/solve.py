"""Dense complex systems: ours, and LAPACK's or cuSOLVER's LU, in one run.

    python -m benchmarks.solve --n 4096 16384 32768 --csv out.csv
    python -m benchmarks.solve --n 32768 --precisions 15xint8 12xint8 --blocks 512 --panels 64 512
    python -m benchmarks.solve --n 32768 --parts

Times are those of whole calls that leave A as it is: copy, factorization, solution, and for ours
refinement. The peer is numpy.linalg.solve (zgesv) on the CPU, and on a GPU cuSOLVER's getrf and
getrs through cupyx, on column-major operands. The backward error of every x is computed alike, in
fp64.
``--parts`` times panels, triangular systems, products and exchanges of rows of one factorization of
ours, on a GPU by events.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from argand import Device, solve
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve.problem import solve_problem

from benchmarks.harness.measuring import array_module, release
from benchmarks.harness.tables import Table, parser
from benchmarks.harness.whole_calls import Clock, WholeCall, add_arguments
from benchmarks.peers import study_peers
from benchmarks.solve_parts import parts_of

_Setting = tuple[str, int, int]
_DEFAULT = "default"
_ROWS = 1024
"""Rows that are drawn, and residuals that are computed, at a time."""


@dataclass(frozen=True, kw_only=True)
class SolveRow(WholeCall):
    """One solver on one system.

    Attributes:
        n, columns: A is (n, n), b (n, columns), both normal.
        block, panel: of ours, as in `argand.solve`.
        tflops: 8/3 n^3 + 8 n^2 columns over the median time.
        speedup: the peer's median time over this one's.
        backward_error: the largest of ||b - A x|| / (||A|| ||x|| + ||b||), maximum norms.
        steps: of refinement.
        verified: whether the backward error is at most (4 sqrt(n) + 1) u, what ours accepts.
    """

    n: int
    columns: int
    implementation: str
    precision: str
    block: int | None
    panel: int | None
    input: str
    tflops: float
    speedup: float | None
    backward_error: float
    steps: int | None
    verified: bool


@dataclass(frozen=True)
class _Solver:
    """``prepare`` makes of A and b what ``call`` takes, before the clock starts."""

    implementation: str
    precision: str
    block: int | None
    panel: int | None
    prepare: Callable[[Any, Any], tuple[Any, Any]]
    call: Callable[[Any, Any], Any]
    steps: Callable[[Any, Any], int | None]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; the exit status is 1 where a solution of ours was not accurate."""
    arguments = _parser().parse_args(argv)
    table, clock = Table(arguments.csv), Clock(arguments, "solve")
    device = clock.device
    for n in arguments.n:
        a, b = _system(n, arguments.columns, arguments.input, arguments.seed, device)
        if arguments.parts:
            for precision, block, panel in _settings(arguments, n, device):
                parts = parts_of(a, b, device, precision=precision, block=block, panel=panel)
                print(f"{n:6} {precision} block {block} panel {panel}: {parts}", flush=True)
            continue
        peer: float | None = None
        for solver in _solvers(arguments, n, device):
            row = _measured(solver, a, b, arguments.input, clock, peer)
            if solver.implementation != "argand" and row.verified:
                peer = row.time_us_p50
            table.add([row], _line(row))
    return table.status("verified", "argand")


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--n", type=int, nargs="+", required=True)
    found.add_argument("--columns", type=int, default=1, help="right-hand sides")
    found.add_argument("--input", choices=list(UNIT_ROUNDOFF), default="complex128")
    found.add_argument(
        "--precisions", nargs="+", default=[_DEFAULT], help="of the products, as of argand.solve"
    )
    found.add_argument("--blocks", type=int, nargs="+", help="least depths of products")
    found.add_argument("--panels", type=int, nargs="+", help="columns of panels")
    found.add_argument("--parts", action="store_true", help="what a call of ours spends where")
    add_arguments(found, seconds=5.0, rest=0.5)
    return found


def _settings(arguments: argparse.Namespace, n: int, device: Device) -> Iterator[_Setting]:
    """Yield precision, block and panel of each run of ours, by name and numbers."""
    kind = np.dtype(arguments.input)
    for name, block, panel in product(
        arguments.precisions, arguments.blocks or [None], arguments.panels or [None]
    ):
        problem = solve_problem(
            ((n, n), kind), ((n, arguments.columns), kind), device.backend,
            precision=None if name == _DEFAULT else name, block=block, panel=panel,
        )  # fmt: skip
        yield problem.precision, problem.block, problem.panel


def _solvers(arguments: argparse.Namespace, n: int, device: Device) -> Iterator[_Solver]:
    if not arguments.no_peer:
        yield from _peers(arguments.input, device)
    for setting in _settings(arguments, n, device):
        yield _ours(*setting)


def _ours(precision: str, block: int, panel: int) -> _Solver:
    call: Any = partial(solve, precision=precision, block=block, panel=panel)
    return _Solver(
        "argand", precision, block, panel, lambda a, b: (a, b), call,
        lambda a, b: call(a, b, details=True).steps,
    )  # fmt: skip


def _peers(dtype: str, device: Device) -> Iterator[_Solver]:
    """Yield LAPACK or cuSOLVER, on the layout that it works on."""
    name = "fp32" if dtype == "complex64" else "fp64"
    arrays = array_module(device)

    def by_columns(a: Any, b: Any) -> tuple[Any, Any]:
        return arrays.asfortranarray(a), arrays.asfortranarray(b)

    for peer in study_peers("solve", device.backend):
        yield _Solver(
            peer.name, name, None, None,
            by_columns,
            peer.computation(name),
            lambda *_: None,
        )  # fmt: skip


def _system(n: int, columns: int, dtype: str, seed: int, device: Device) -> tuple[Any, Any]:
    """Return a and b, normal, drawn by blocks of rows: at n = 32768 A takes 16 GiB."""
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    a, b = arrays.empty((n, n), dtype), arrays.empty((n, columns), dtype)
    for x in (a, b):
        for start in range(0, n, _ROWS):
            block = x[start : start + _ROWS]
            block[...] = rng.standard_normal((*block.shape, 2)).view(np.complex128)[..., 0]
    return a, b


def _measured(
    solver: _Solver, a: Any, b: Any, dtype: str, clock: Clock, peer: float | None
) -> SolveRow:
    n, columns = b.shape
    left, right = solver.prepare(a, b)
    error = backward_error(a, solver.call(left, right), b)
    steps = solver.steps(left, right)
    columns_of_call = clock.timed(
        partial(solver.call, left, right), ours=solver.implementation == "argand"
    )
    time_us = columns_of_call["time_us_p50"]
    del left, right
    release(clock.device)
    flops = 8 / 3 * n**3 + 8 * n**2 * columns
    return SolveRow(
        n=n, columns=columns, implementation=solver.implementation, precision=solver.precision,
        block=solver.block, panel=solver.panel, input=dtype,
        tflops=flops / time_us / 1e6, speedup=peer / time_us if peer else None,
        backward_error=error, steps=steps, verified=error <= accepted_error(n, dtype),
        **columns_of_call,
    )  # fmt: skip


def accepted_error(n: int, dtype: str) -> float:
    """Return the backward error that `argand.solve` accepts, in x of type ``dtype``."""
    return (4 * math.sqrt(n) + 1) * UNIT_ROUNDOFF[dtype]


def backward_error(a: Any, x: Any, b: Any) -> float:
    """Return the largest ||b - A x|| / (||A|| ||x|| + ||b||) over columns, in fp64."""
    found, sums, x = [], [], x.astype(np.complex128)
    for start in range(0, len(a), _ROWS):
        rows = slice(start, start + _ROWS)
        found.append(abs(b[rows] - a[rows].astype(np.complex128) @ x).max(axis=0).tolist())
        sums.append(float(abs(a[rows]).sum(axis=1, dtype=np.float64).max()))
    x_norms, b_norms = (np.array(abs(y).max(axis=0).tolist()) for y in (x, b))
    return float(np.max(np.max(found, axis=0) / (max(sums) * x_norms + b_norms)))


def _line(row: SolveRow) -> str:
    faster = "" if row.speedup is None else f" x {row.speedup:.2f}"
    steps = "" if row.steps is None else f", {row.steps} steps"
    block = "" if row.block is None else f" block {row.block} panel {row.panel}"
    verdict = "" if row.verified else "  NOT ACCURATE"
    return (
        f"{row.n:6} x {row.columns} {row.input:10} {row.implementation:9} {row.precision:8}{block} "
        f"{1e-3 * row.time_us_p50:10.2f} ms {row.tflops:7.2f} TFLOP/s{faster}  "
        f"backward error {row.backward_error:.1e}{steps}{verdict}"
    )


if __name__ == "__main__":
    sys.exit(main())
