"""A product on a GPU in panels, one after another, which share their workspace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from argand.gemm.choice import GemmChoice
from argand.gemm.launch import GemmLaunch
from argand.gemm.pack.launch import Planes
from argand.gemm.panels import Panels
from argand.gemm.product_form import OperandForm, ProductForm
from argand.gemm.question import GemmSizes
from argand.runtime.calls.layout import Layout
from argand.runtime.launch import kernel_trace
from argand.runtime.memory.workspace import parts_of_call


class PanelLaunch:
    """The launches of the panels of a product, each of which ``prepare`` makes.

    It stands for a `GemmLaunch`. Packed operands are those of every panel.
    """

    sequence = None
    """No one launch of a call's addresses."""

    def __init__(
        self, panels: Panels, form: ProductForm, prepare: Callable[[ProductForm], GemmLaunch]
    ) -> None:
        sizes = GemmSizes.of(form.problem)
        made: dict[ProductForm, GemmLaunch] = {}
        self._parts: list[tuple[GemmLaunch, tuple[int, int, int, int]]] = []
        for products, rows, columns in panels.each(sizes):
            triangle = form.problem.triangle and rows == columns
            problem = replace(
                form.problem, batch_shape=(products.stop - products.start,),
                m=rows.stop - rows.start, n=columns.stop - columns.start,
                triangle=triangle, mirror=form.problem.mirror and triangle,
            )  # fmt: skip
            a, at_a = _lines(form.a, products, rows)
            b, at_b = _lines(form.b, products, columns)
            out, at_out = _block(form.out, products, rows, columns)
            c, at_c = None, at_out
            if form.c is not None:
                c, at_c = _block(form.c, products, rows, columns)
            part = ProductForm(problem, a, b, c, out)
            if part not in made:
                made[part] = prepare(part)
            self._parts.append((made[part], (at_a, at_b, at_c, at_out)))
        first = self._parts[0][0]
        #: The choice of the first panel.
        self.choice: GemmChoice = first.choice
        #: The launch's name in records.
        self.name = f"{len(self._parts)} panels, {first.name}"
        #: Bytes of workspace of a call.
        self.nbytes = max(launch.nbytes for launch, _ in self._parts)
        #: Whether a Hermitian result is stored whole, with a real diagonal.
        self.mirrors = all(launch.mirrors for launch, _ in self._parts)

    def __call__(self, a: int | Planes, b: int | Planes, c: int, out: int) -> None:
        """Launch on these addresses or planes; c is not read where beta is 0."""
        if kernel_trace.watching:
            kernel_trace.note(self.name)
        with parts_of_call() as begin:
            for launch, (at_a, at_b, at_c, at_out) in self._parts:
                begin()
                launch.queue(
                    a if isinstance(a, Planes) else a + at_a,
                    b if isinstance(b, Planes) else b + at_b,
                    c + at_c, out + at_out,
                )  # fmt: skip


def _lines(x: OperandForm, products: slice, lines: slice) -> tuple[OperandForm, int]:
    """Return the form of some lines of an operand, and where they begin; packed ones are whole."""
    if x.layout is None:
        return x, 0
    layout, offset = _block(x.layout, products, lines, slice(0, x.layout.columns))
    return replace(x, layout=layout), offset


def _block(x: Layout, products: slice, rows: slice, columns: slice) -> tuple[Layout, int]:
    """Return the layout of a block of matrices, and the bytes from their begin to its own."""
    offset = x.item * (
        products.start * x.batch_stride + rows.start * x.row_stride
        + columns.start * x.column_stride
    )  # fmt: skip
    aligned = offset | x.aligned
    layout = replace(
        x, rows=rows.stop - rows.start, columns=columns.stop - columns.start,
        aligned=aligned & -aligned,
    )  # fmt: skip
    return layout, offset
