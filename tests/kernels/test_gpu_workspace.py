"""The memory that a product takes besides its operands, at the sizes of the benchmark (a GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.gemm import gemm_problem
from argand.gemm_choice import GemmChoice
from argand.wgmma_plan import WgmmaPlan

from benchmarks.shapes import SUITES, Shape
from tests.kernels.precisions import TENSOR

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("beta", [0, 1])
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("shape", SUITES["gemm"], ids=str)
def test_at_most_twice_the_operands(cp: Any, precision: str, shape: Shape, beta: int) -> None:
    """Where beta is not 0 C is one of them: totals of a long k may wait beside it."""
    from argand.cuda_arrays import Layout
    from argand.cuda_launch import OperandForm, prepare

    m, n, k = shape.m, shape.n, shape.k
    batched = shape.batch > 1
    problem = gemm_problem(
        (*shape.leading, m, k), (*shape.leading, k, n), (*shape.leading, m, n), beta=beta,
        precision=PRECISIONS[precision],
    )  # fmt: skip
    out = Layout(m, n, n, 1, m * n, 8, 32)
    launch = prepare(
        problem,
        OperandForm(Layout(m, k, k, 1, m * k * batched, 8, 32), batched=batched),
        OperandForm(Layout(n, k, 1, n, n * k * batched, 8, 32), batched=batched),
        out if beta else None,
        out,
    )
    operands = 8 * shape.batch * (k * (m + n) + beta * m * n)
    assert launch.nbytes <= 2 * operands


@pytest.mark.parametrize("shape", [(2300, 1000, 2000), (1000, 2300, 2100)], ids=str)
def test_pieces_over_planes_give_the_same_bits(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int]
) -> None:
    """More tiles than multiprocessors, whose last ones are split: in two launches or in one."""
    from argand import cuda_calls, cuda_launch, gemm_memory

    m, n, k = shape
    a, b = (
        cp.asarray(rng.standard_normal((*x, 2), np.float32)).view(cp.complex64)[..., 0]
        for x in ((m, k), (k, n))
    )
    plan = WgmmaPlan(2, 128, 16, 3, storage="planar")
    launches = []
    results = []
    prepare = cuda_launch.prepare

    def watched(*arguments: Any) -> Any:
        launches.append(prepare(*arguments))
        return launches[-1]

    monkeypatch.setattr("argand.cuda_gemm.prepare", watched)
    for most in (gemm_memory.MOST, 100):
        monkeypatch.setattr(gemm_memory, "MOST", most)
        for swapped in (False, True):
            cuda_calls._kept.clear()  # calls of this form are remembered
            with cuda_launch.forced.to(GemmChoice(plan, swapped)):
                results.append(gemm(a, b, precision="3xtf32"))
    over = [len(launch.kernels) for launch in launches]
    assert over == [2, 2, 1, 1]
    first, *others = (x.view(cp.uint32) for x in results)
    assert bool((first == others[1]).all())
    assert bool((others[0] == others[2]).all())
