"""Products within a workspace limit on a GPU: by cuBLAS, and within what errors say is needed."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import GemmPlan, WorkspaceError, gemm, workspace_limit

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.gemm.product_cases import check, normal

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("sizes", [(1, 64, 96, 20_000), (3, 300, 250, 700)], ids=str)
@pytest.mark.parametrize("limit", [16 << 10, (1 << 20) + 1, 9 << 20, 32 << 20])
def test_products_of_cublas(
    cp: Any, rng: np.random.Generator, precision: str, sizes: tuple[int, ...], limit: int
) -> None:
    """The library takes other kernels; from the second call on the product is a graph."""
    batch, m, n, k = sizes
    a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
    with workspace_limit(limit):
        check(cp, a, b, precision=precision)
    x, y = (cp.asarray(array).astype("c16" if precision == "fp64" else "c8") for array in (a, b))
    out = cp.empty((batch, m, n), x.dtype)
    call = partial(gemm, x, y, precision=precision, out=out)
    with workspace_limit(limit):
        expected = gemm(x, y, precision=precision)
        for _ in range(3):
            out.fill(cp.nan)
            assert most_allocated(cp, call) <= limit
            assert bool((out == expected).all())
        plan = GemmPlan(x, y, precision=precision)
        found = int(plan.describe().rpartition("workspace: ")[2].split()[0])
        assert limit / 2 < found <= limit
    assert bool((plan(x, y) == expected).all())


@pytest.mark.parametrize("seed", range(4))
def test_what_errors_say_is_enough(cp: Any, wgmma: None, seed: int) -> None:
    """Sizes are random and odd, so that panels begin at other addresses than whole operands do."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        batch, m, n, k = (int(x) for x in rng.integers(1, (20, 200, 200, 1500)))
        a, b = normal(rng, batch, m, k), normal(rng, batch, k, n)
        precision = str(rng.choice(["tf32", "3xtf32", "fp16", "3xfp16", "bf16"]))
        x, y = cp.asarray(a), cp.asarray(b)
        with workspace_limit(0), pytest.raises(WorkspaceError) as error:
            gemm(x, y, precision=precision, kernels="wgmma")
        with workspace_limit(error.value.needed):
            check(cp, a, b, precision=precision, kernels="wgmma")
            plan: Any = GemmPlan(x, y, precision=precision, kernels="wgmma")
        assert plan._on_gpu.nbytes <= error.value.needed
        assert f"workspace: {plan._on_gpu.nbytes} bytes" in plan.describe()
