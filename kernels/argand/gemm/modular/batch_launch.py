"""Exact products of a batch on a GPU, some after the others, which share their workspace."""

from __future__ import annotations

from dataclasses import replace

from argand.device import Device
from argand.gemm.modular.launch import ModularLaunch
from argand.gemm.modular.problem import ModularProblem
from argand.gemm.modular.proof import wrong_product
from argand.runtime.calls.layout import Layout
from argand.runtime.launch import kernel_trace
from argand.runtime.memory.workspace import parts_of_call


class BatchLaunch:
    """The launches of ``count`` products of a batch at a time. It stands for a `ModularLaunch`.

    Each is a call of its own, with the exponents, the norms and the proof of its lines alone. No
    operand of a batch is packed. Raises as that does, of the most products first.
    """

    def __init__(
        self, problem: ModularProblem, device: Device, limit: int, count: int, allowed: int
    ) -> None:
        self._problem, self._count = problem, count
        launches = {
            products: ModularLaunch(_some(problem, products), device, limit, allowed)
            for products in sorted({count, problem.batch % count} - {0}, reverse=True)
        }
        #: Bytes of workspace of a call.
        self.nbytes = max(launch.nbytes for launch in launches.values())
        self._parts = [
            (first, launches[min(count, problem.batch - first)])
            for first in range(0, problem.batch, count)
        ]
        #: The launch's name in records.
        self.name = f"{len(self._parts)} parts of the batch, {launches[count].name}"

    def __call__(self, a: int, b: int, c: int, out: int) -> None:
        """Launch on these addresses; c is not read where beta is 0.

        Raises WrongProductError where proofs failed, for which it waits.
        """
        if kernel_trace.watching:
            kernel_trace.note(self.name)
        problem, found = self._problem, []
        c_layout = problem.c or problem.out
        with parts_of_call() as begin:
            for product, launch in self._parts:
                begin()
                wrong, row = launch.queue(
                    a + _offset(problem.a, product), b + _offset(problem.b, product),
                    c + _offset(c_layout, product), out + _offset(problem.out, product),
                )  # fmt: skip
                if wrong:
                    found.append((wrong, row + product * problem.a.rows))
        if found:
            rows, first = problem.batch * problem.a.rows, found[0][1]
            raise wrong_product(sum(x for x, _ in found), rows, first, problem.proved or "row")


def _some(problem: ModularProblem, products: int) -> ModularProblem:
    """Return the problem of some products, wherever they begin."""
    return replace(
        problem, batch=products, a=_anywhere(problem.a), b=_anywhere(problem.b),
        c=problem.c and _anywhere(problem.c), out=_anywhere(problem.out),
    )  # fmt: skip


def _anywhere(x: Layout) -> Layout:
    """Return a layout that holds from each of its matrices on."""
    aligned = _offset(x, 1) | x.aligned
    return replace(x, aligned=aligned & -aligned)


def _offset(x: Layout, product: int) -> int:
    """Return the bytes from the first matrix to another."""
    return product * x.batch_stride * x.item
