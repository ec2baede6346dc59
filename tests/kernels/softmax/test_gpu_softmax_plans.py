"""Plans of a GPU softmax: each candidate, the longest rows, and tuned plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, softmax, tune_softmax
from argand.device import Device
from argand.runtime.compile.compiler import compile_all
from argand.runtime.plans import tuned_plans
from argand.softmax import tuned
from argand.softmax.candidates import SoftmaxCandidate, candidates
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


@pytest.fixture(autouse=True)
def _own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A table of this test alone; compiled kernels stay where they are."""
    monkeypatch.setattr(tuned_plans, "cache_folder", lambda: tmp_path)
    tuned.TABLE.changed()
    yield
    tuned.TABLE.changed()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans of softmaxes that are prepared from now on."""
    from argand.softmax.gpu import SoftmaxLaunch

    found: list[Any] = []
    prepare = SoftmaxLaunch.__init__

    def noted(self: Any, *given: Any) -> None:
        prepare(self, *given)
        found.append((self.form, self.plan))

    monkeypatch.setattr(SoftmaxLaunch, "__init__", noted)
    return found


@pytest.mark.parametrize(
    ("kind", "rows", "columns"), [("fp32", 300, 1000), ("fp16", 9, 12_289), ("bf16", 3, 300_000)]
)
def test_the_fastest_plan_is_kept_and_taken(
    cp: Any,
    rng: np.random.Generator,
    gpu: Device,
    planned: list[Any],
    kind: str,
    rows: int,
    columns: int,
) -> None:
    x = stored(4 * rng.standard_normal((rows, columns)).astype(np.float32), kind)
    given = {"format": "bf16" if kind == "bf16" else None, "output": kind}
    softmax(cp.asarray(x), **given)
    found = tune_softmax(rows, columns, input=kind, output=kind)
    times = [time for _, time in found]
    assert times == sorted(times)
    assert times[0] > 0
    planned.clear()
    result = numbers(softmax(cp.asarray(x), **given).get(), kind)  # planned again
    ((form, plan),) = planned
    assert plan == found[0][0].plan(form, gpu.require_arch(), columns)
    exact = special.softmax(numbers(x, kind), axis=-1)
    held = half_ulps(result, exact, kind)
    assert held.max() <= (4 if kind == "fp32" else 1.05)


def test_what_was_kept_is_taken_and_a_neighbour_that_it_does_not_hold_is_not(
    cp: Any, planned: list[Any]
) -> None:
    x = cp.random.default_rng(1).standard_normal((5, 1000), dtype=cp.float32)
    softmax(x)
    (form, _), *_ = planned
    candidate = SoftmaxCandidate(128, 1)
    tuned.TABLE.keep(cp.cuda.Device().id, {tuned.key(form, 5, 1000): candidate})
    planned.clear()
    softmax(x)
    softmax(x[:, :960].copy())
    softmax(cp.concatenate([x, x], axis=1))
    plans = [plan for _, plan in planned]
    assert [plan.row_threads for plan in plans[:2]] == [128, 128]
    assert plans[2].row_threads != 128
