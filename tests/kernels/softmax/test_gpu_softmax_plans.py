"""Plans of a GPU softmax: each candidate plan, and the longest rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, softmax
from argand.device import Device
from argand.runtime.compile.compiler import compile_all
from argand.softmax.candidates import candidates
from argand.softmax.plan import RowPlan, SoftmaxForm, vector_for
from argand.softmax.source import softmax_source
from scipy import special

from tests.kernels.softmax.softmax_cases import half_ulps, numbers, stored

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("kind", "output"), [("fp32", "fp32"), ("fp16", "fp16"), ("bf16", "bf16"), ("fp16", "fp32")]
)
@pytest.mark.parametrize("columns", [31, 101, 1000, 12_289, 65_536, 300_001])
def test_plans_of_every_kind(
    cp: Any, rng: np.random.Generator, gpu: Device, kind: str, output: str, columns: int
) -> None:
    from argand.softmax.gpu import PLAN_OVERRIDE

    x = stored(4 * rng.standard_normal((9, columns)).astype(np.float32), kind)
    x[3, -1] = stored(np.float32([np.nan]), kind)[0]
    given = {"format": "bf16" if kind == "bf16" else None, "output": output}
    exact = special.softmax(numbers(x, kind), axis=-1)
    vector = vector_for(kind, output)
    edges = columns % vector != 0
    form = SoftmaxForm("softmax", kind, output, PRECISIONS["fp32"], vector, edges, gapless=True)
    arch = gpu.require_arch()
    kinds: dict[tuple[str, bool], list[RowPlan]] = {}
    for plan in candidates(form, arch, gpu.sm_count, columns):
        kinds.setdefault((plan.kind, plan.cluster > 1), []).append(plan)
    plans = {
        plan for some in kinds.values()
        for plan in (some[0], some[len(some) // 3], some[2 * len(some) // 3], some[-1])
    }  # fmt: skip
    assert plans
    compile_all((softmax_source(form, plan), arch.target) for plan in plans)
    for plan in plans:
        out = cp.asarray(stored(np.full(x.shape, np.nan, np.float32), output))
        with PLAN_OVERRIDE.use((plan, form.vector)):
            softmax(cp.asarray(x), out=out, **given)
        found = numbers(out.get(), output)
        assert np.isnan(found[3]).all()
        held = half_ulps(found, exact, output)
        assert np.nanmax(held) <= (4 if output == "fp32" else 1.05), plan
        assert np.isfinite(np.delete(found, 3, axis=0)).all(), plan


@pytest.mark.parametrize("columns", [33_001, 42_976])
def test_rows_of_a_block_alone(cp: Any, rng: np.random.Generator, columns: int) -> None:
    x = 4 * rng.standard_normal((1100, columns), dtype=np.float32)
    x[7, 5] = np.nan
    found = softmax(cp.asarray(x), precision="fp32")
    assert bool(cp.isnan(found[7]).all())
    assert bool(cp.isfinite(found[8:]).all())
    sample = [0, 6, 555, 1099]
    exact = special.softmax(x[sample].astype(np.float64), axis=-1)
    held = half_ulps(found.get()[sample], exact, "fp32")
    assert held.max() <= 4


@pytest.mark.parametrize(("rows", "columns"), [(116, 36_077), (90, 36_080), (40, 92_159)])
@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_few_rows_of_halves_in_fp32(
    cp: Any, rng: np.random.Generator, rows: int, columns: int, kind: str
) -> None:
    x = stored(4 * rng.standard_normal((rows, columns), dtype=np.float32), kind)
    x[3, 5] = stored(np.float32([np.nan]), kind)[0]
    exact = special.softmax(numbers(x, kind), axis=-1)
    given = {"format": "bf16" if kind == "bf16" else None, "output": "fp32"}
    found = softmax(cp.asarray(x), **given).get()
    assert np.isnan(found[3]).all()
    held = half_ulps(found, exact, "fp32")
    assert np.nanmax(held) <= 4
    assert np.isfinite(np.delete(found, 3, axis=0)).all()


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_few_long_rows(cp: Any, rng: np.random.Generator, rows: int, kind: str) -> None:
    x = stored(4 * rng.standard_normal((rows, 1 << 20), dtype=np.float32), kind)
    looked_at = np.s_[:: max(1, rows // 4)]
    exact = special.softmax(numbers(x[looked_at], kind), axis=-1)
    given = cp.asarray(x)
    for _ in range(3):  # the third is from the call cache
        result = softmax(given, output=kind)
        assert bool(cp.isfinite(result).all())
        found = numbers(result[looked_at].get(), kind)
        held = half_ulps(found, exact, kind)
        assert held.max() <= (4 if kind == "fp32" else 1.05)
