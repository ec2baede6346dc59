"""Lower triangles row by row on a GPU: blocks of full matrices in a workspace, then a gather."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cupy

from argand.device import Device
from argand.gemm.gpu import gemm
from argand.gemm.modular.api import modular_gemm
from argand.gemm.modular.moduli import EXACT
from argand.gemm.operands import Op
from argand.gemm.pairs import Pairs
from argand.gemm.problem import gemm_problem
from argand.herk.finish_launch import gather_launch
from argand.herk.gpu_lower import lower_triangle
from argand.herk.problem import HerkProblem
from argand.runtime.calls.layout import batched
from argand.runtime.memory.workspace_limit import WorkspaceError, allowed_workspace, holding

_MAX_BYTES = 1 << 28
"""Bytes of matrices whose triangles are gathered at a time, at least one of them."""
_MIN_ROWS = 64
"""Fewest rows of a block, a tile of products: fewer would leave most of it empty."""


class Triangle:
    """A call of ``form="triangle"``, its batch as one axis.

    Within a workspace limit blocks of rows are computed, from the first column to the diagonal of
    their last row, and may take half of it: the rest is the products'.
    """

    def __init__(self, problem: HerkProblem, a: Any, c: Any, target: Any, device: Device) -> None:
        self._problem, self._device = problem, device
        self._operand = in_one_batch(a, problem.batch)
        self._rows = target.reshape(problem.batch, 1, target.shape[-1])
        self._addend = None
        if c is not None:
            self._addend = cupy.ascontiguousarray(c).reshape(self._rows.shape)
        allowed = allowed_workspace()
        self._most = math.inf if allowed is None else allowed // 2

    def compute(self, products: slice, rows: slice) -> None:
        """Compute some rows of some triangles, in smaller blocks where these take too much.

        Raises WorkspaceError where the smallest block does.
        """
        count = products.stop - products.start
        held = count * (rows.stop - rows.start) * rows.stop * self._rows.itemsize
        fits = held <= (self._most if count == 1 else min(self._most, _MAX_BYTES))
        smallest = count == 1 and rows.stop - rows.start < 2 * _MIN_ROWS
        if fits or smallest:
            try:
                with holding(held, "a block of the matrices of form='triangle'"):
                    self._gather(products, rows, self._product(products, rows))
            except WorkspaceError:
                if smallest:
                    raise
            else:
                return
        # The largest first: where it is refused, nothing is written yet.
        if count > 1:
            for part in _halves(products):
                self.compute(part, rows)
        else:
            for part in _halves(rows, _MIN_ROWS):
                self.compute(products, part)

    def _product(self, products: slice, rows: slice) -> Any:
        """Return rows of full matrices, undefined above the diagonal."""
        problem, x = self._problem, _some(self._operand, products)
        count = products.stop - products.start
        if rows == slice(0, problem.n):
            found = cupy.empty((count, problem.n, problem.n), problem.dtype)
            lower_triangle(replace(problem, batch_shape=(count,), beta=0.0), x, None, found)
            return found
        found = cupy.empty((count, rows.stop - rows.start, rows.stop), problem.dtype)
        left = _lines(x, problem.op, rows)
        right = _lines(x, problem.op, slice(0, rows.stop))
        if problem.precision is None or problem.precision.moduli:
            name = EXACT if problem.precision is None else problem.precision.name
            modular_gemm(
                left, right, None, alpha=problem.alpha, beta=0, op_a=problem.op,
                op_b=problem.other_op, precision=name, tolerance=None, check=False, out=found,
                kernels=problem.kernels,
            )  # fmt: skip
            return found
        left, right = (x.to_complex64() if isinstance(x, Pairs) else x for x in (left, right))
        product = gemm_problem(
            left.shape, right.shape, None, alpha=problem.alpha, op_a=problem.op,
            op_b=problem.other_op, precision=problem.precision, kernels=problem.kernels,
        )  # fmt: skip
        return gemm(product, left, right, None, found)

    def _gather(self, products: slice, rows: slice, matrices: Any) -> None:
        """Gather rows of matrices, plus beta C, where they belong in the triangles."""
        count = (products.stop - products.start,)
        source, to = batched(matrices, count), batched(self._rows[products], count)
        more = None if self._addend is None else batched(self._addend[products], count)
        launch = gather_launch(
            source.layout, rows.start, to.layout, None if more is None else more.layout,
            self._problem.beta, count[0], self._problem.dtype, self._device,
        )  # fmt: skip
        launch({
            "matrix": source.array.data.ptr, "triangle": to.array.data.ptr,
            "c": 0 if more is None else more.array.data.ptr,
        })  # fmt: skip


def in_one_batch(a: Any, batch: int) -> Any:
    """Return an operand, an array or `Pairs`, with its leading axes as one."""
    if isinstance(a, Pairs):
        return Pairs(a.array.reshape(batch, *a.array.shape[-3:]), a.format)
    return a.reshape(batch, *a.shape[-2:])


def _some(a: Any, products: slice) -> Any:
    return Pairs(a.array[products], a.format) if isinstance(a, Pairs) else a[products]


def _lines(a: Any, op: Op, rows: slice) -> Any:
    """Return an operand whose op(a) has these rows."""
    if isinstance(a, Pairs):
        array = a.array[:, rows] if op == "N" else a.array[:, :, rows]
        return Pairs(array, a.format)
    return a[:, rows] if op == "N" else a[..., rows]


def _halves(whole: slice, unit: int = 1) -> Iterator[slice]:
    """Yield both halves, the second first, which has what is no whole unit."""
    middle = whole.start + (whole.stop - whole.start) // (2 * unit) * unit
    yield slice(middle, whole.stop)
    yield slice(whole.start, middle)
