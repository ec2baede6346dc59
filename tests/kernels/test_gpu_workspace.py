"""The memory that a product takes besides its operands, at the sizes of the benchmark (a GPU)."""

from __future__ import annotations

from typing import Any

import pytest
from argand import PRECISIONS
from argand.gemm import gemm_problem

from benchmarks.shapes import SUITES, Shape

pytestmark = pytest.mark.gpu
TENSOR = [name for name, row in PRECISIONS.items() if not row.exact_operands]
PIECE = 4 * 128 * 256
"""Bytes of the sums of a piece of the largest tile."""
ABOVE = {
    "3xtf32": {"4096x4096x4096", "8192x8192x8192", "3456x4096x4096", "512x512x512"},
    "3xfp16": {"512x512x512"},
}
"""Where pieces of the shared last wave come to more than planes leave of twice the operands."""


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", SUITES["gemm"], ids=str)
def test_at_most_twice_the_operands(cp: Any, precision: str, shape: Shape) -> None:
    from argand.cuda_arrays import Layout
    from argand.cuda_launch import OperandForm, prepare
    from argand.device import gpu

    m, n, k = shape.m, shape.n, shape.k
    batched = shape.batch > 1
    problem = gemm_problem(
        (*shape.leading, m, k), (*shape.leading, k, n), precision=PRECISIONS[precision]
    )
    launch = prepare(
        problem,
        OperandForm(Layout(m, k, k, 1, m * k * batched, 8, 32), batched=batched),
        OperandForm(Layout(n, k, 1, n, n * k * batched, 8, 32), batched=batched),
        None,
        Layout(m, n, n, 1, m * n, 8, 32),
    )
    operands = 8 * shape.batch * k * (m + n)
    if str(shape) not in ABOVE.get(precision, ()):
        assert launch.nbytes <= 2 * operands
    else:
        assert launch.nbytes <= 2 * operands + PIECE * gpu(cp.cuda.Device().id).cores
