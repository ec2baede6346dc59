"""Exact products in a workspace of the bytes of operands and result, and of up to twice as many.

    python -m benchmarks.exact_workspace --csv docs/data/h200-exact-workspace.csv

Planes of residues take 2 N bytes a number, so a call that held all of them would take more bytes
than operands and result where these are complex64 and N is above 4. It goes in panels or in parts
of k. Each shape is multiplied in the workspace of a call, and in twice the bytes of operands and
result, below 2 GiB. Times are those of `benchmarks.exact`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from argand.device import gpu
from argand.gemm.modular.moduli import MODULAR_PRECISIONS
from argand.gemm.modular.pieces import most_workspace
from argand.gemm.modular.problem import ModularProblem

from benchmarks.exact import KINDS, call_seconds, operand_type
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.tables import Table, parser
from workflow.versions import timestamp, versions

CASES = (
    ("4096x4096x4096", "7xint8"), ("4096x4096x4096", "8xint8"), ("4096x4096x4096", "15xint8"),
    ("4096x4096x4096", "16xint8"), ("3456x4096x4096", "7xint8"), ("8192x8192x8192", "7xint8"),
    ("8192x8192x8192", "15xint8"), ("64x1024x1024x1024", "7xint8"), ("8192x8192x1024", "7xint8"),
    ("5000x3000x6000", "7xint8"), ("2048x2048x16384", "7xint8"), ("1024x1024x65536", "7xint8"),
)  # fmt: skip

_MOST_BYTES = 1 << 31
"""Largest workspace that is measured beside a call's own where that is smaller."""


@dataclass(frozen=True)
class WorkspaceRow:
    """One shape in one workspace.

    Attributes:
        shape, precision: of the call.
        limit: in words.
        workspace_bytes: that the call takes.
        operand_bytes: of operands and result.
        pieces: that it goes in.
        rows, columns, k_parts: of the first of them.
        idle_ms, row_ms: of a call after idle, and in a row of calls.
        same_bits: whether the result has the bits of that in the largest workspace.
    """

    shape: str
    precision: str
    limit: str
    workspace_bytes: int
    operand_bytes: int
    pieces: int
    rows: int
    columns: int
    k_parts: int
    idle_ms: float
    row_ms: float
    same_bits: bool
    device: str
    versions: str
    timestamp: str


class Product:
    """The operands of a call, its result and the launch's problem."""

    def __init__(self, cupy: Any, shape: Shape, precision: str, seed: int = 1) -> None:
        from argand.runtime.layout import batched

        self.shape, self.precision = shape, precision
        self.device = gpu(cupy.cuda.Device().id)
        dtype = operand_type(precision)
        self.a, self.b = (
            KINDS["normal"](cupy, (*shape.leading, *size), dtype, seed + side)
            for side, size in enumerate(((shape.m, shape.k), (shape.k, shape.n)))
        )
        self.out = cupy.empty((*shape.leading, shape.m, shape.n), dtype)
        a, b, out = (batched(x, shape.leading) for x in (self.a, self.b, self.out))
        self.problem = ModularProblem(
            dtype, MODULAR_PRECISIONS[precision], shape.batch, a.layout, b.transposed.layout, None,
            out.layout, False, False, 1, 0,
        )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print all rows; the exit status is 1 where bits differ."""
    found = parser(__doc__)
    found.add_argument("--case", nargs=2, action="append", metavar=("SHAPE", "PRECISION"))
    found.add_argument("--calls", type=int, default=5, help="calls after idle")
    found.add_argument("--seconds", type=float, default=0.4, help="of calls in a row")
    arguments = found.parse_args(argv)
    import cupy

    table = Table(arguments.csv)
    for shape, precision in arguments.case or CASES:
        product = Product(cupy, Shape.parse(shape), precision)
        for row in measured(product, arguments.calls, arguments.seconds):
            table.add([row], line(row))
        del product
        cupy.get_default_memory_pool().free_all_blocks()
    return table.status("same_bits")


def measured(product: Product, calls: int, seconds: float) -> Iterator[WorkspaceRow]:
    """Yield the rows of one shape: in twice the workspace of a call, and in its own."""
    from argand.gemm.modular.launch import ModularLaunch

    problem = product.problem
    once = most_workspace(problem)
    limits = {"twice": max(once, min(2 * problem.nbytes, _MOST_BYTES)), "once": once}
    expected: Any = None
    for name, limit in limits.items():
        launch = ModularLaunch(problem, product.device, limit)
        addresses = product.a.data.ptr, product.b.data.ptr, 0, product.out.data.ptr
        product.out.fill(float("nan"))
        launch(*addresses)
        bits = product.out.view("uint64")
        if expected is None:
            expected = bits.copy()
        same = bool((bits == expected).all())
        idle, row = call_seconds(partial(launch, *addresses), calls, seconds)
        first = launch.pieces[0]
        yield WorkspaceRow(
            str(product.shape), product.precision, name, launch.nbytes,
            problem.nbytes, len(launch.pieces), first.rows, first.columns, first.k_parts,
            1e3 * idle, 1e3 * row, same, product.device.name, versions(), timestamp(),
        )  # fmt: skip


def line(row: WorkspaceRow) -> str:
    """Return a row as it is printed."""
    return (
        f"{row.shape:20} {row.precision:8} {row.limit:6} "
        f"{row.workspace_bytes / row.operand_bytes:5.2f} x {row.pieces:3} pieces from "
        f"{row.rows}x{row.columns}, {row.k_parts} parts of k, "
        f"idle {row.idle_ms:8.3f} ms, in a row {row.row_ms:8.3f} ms"
        f"{'' if row.same_bits else ' OTHER BITS'}"
    )


if __name__ == "__main__":
    sys.exit(main())
