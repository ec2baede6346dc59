"""`ImagePlan` on a GPU: its powers, NaN where a call would raise, and graphs that capture it."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import ImagePlan, image

from tests.kernels.image.arrays import Sky, sky

pytestmark = pytest.mark.gpu


def on_gpu(cp: Any, one: Sky) -> tuple[Any, Any, Any, Any]:
    """Covariances and directions there, positions and frequencies on the host."""
    r, x, f, s = one.arguments
    return cp.asarray(r), x, f, cp.asarray(s)


@pytest.mark.parametrize("antennas", [5, 40, 131])
@pytest.mark.parametrize("precision", ["3xtf32", "fp16"])
def test_a_plan_computes_what_the_call_does(cp: Any, antennas: int, precision: str) -> None:
    given = on_gpu(cp, sky(antennas, 3, 150, leading=(2,), seed=1))
    plan = ImagePlan(*given, precision=precision)
    for seed in (1, 2, 3):
        one = sky(antennas, 3, 150, leading=(2,), seed=seed)
        given = on_gpu(cp, one)
        out = cp.full((2, 150), np.nan, "f4")
        assert plan(*given, out=out) is out
        np.testing.assert_array_equal(out.get(), image(*given, precision=precision).get())
        np.testing.assert_array_equal(out.get(), plan(*given).get())
        assert np.all(np.abs(out.get() - one.power()) <= one.allowed(precision, "cuda"))


@pytest.mark.parametrize("antennas", [5, 40, 131])
@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("precision", ["3xtf32", "3xfp16", "bf16"])
def test_what_a_call_refuses_is_nan(cp: Any, antennas: int, columns: int, precision: str) -> None:
    """Only that image and those directions are NaN, and the next call is right again."""
    one = sky(antennas, 3, 300, leading=(3,), seed=4)
    r, x, f, s = (np.array(given) for given in one.arguments)
    if columns == 3:
        s = np.column_stack([s, np.sqrt(1 - (s**2).sum(axis=1))])
    good = cp.asarray(r), x, f, cp.asarray(s)
    plan = ImagePlan(*good, precision=precision)
    expected = plan(*good).get()
    assert np.isfinite(expected).all()
    r[1, 2, 3, 1] += np.abs(r).max()
    s[7, :2], s[250, 1], s[299, 0] = (0.8, 0.7), np.nan, np.inf
    lost = np.zeros((3, 300), bool)
    lost[1] = lost[:, [7, 250, 299]] = True
    found = plan(cp.asarray(r), x, f, cp.asarray(s)).get()
    np.testing.assert_array_equal(np.isnan(found), lost)
    np.testing.assert_array_equal(found[~lost], expected[~lost])
    np.testing.assert_array_equal(plan(*good).get(), expected)
    with pytest.raises(ValueError, match=r"must not be longer than 1|must be finite"):
        image(good[0], x, f, cp.asarray(s), precision=precision)


def test_a_graph_captures_a_plan(cp: Any) -> None:
    one = sky(40, 3, 150, seed=5)
    given = on_gpu(cp, one)
    plan, out = ImagePlan(*given), cp.zeros(150, "f4")
    with cp.cuda.Stream(non_blocking=True) as stream:
        plan(*given, out=out)
        stream.begin_capture()
        plan(*given, out=out)
        graph = stream.end_capture()
        # Then only the graph holds positions.
        import_module("argand.image.launches")._table.cache_clear()
        gc.collect()
        cp.get_default_memory_pool().free_all_blocks()
        others = [cp.full(size, np.nan) for size in range(64, 640, 8)]
        out.fill(np.nan)
        graph.launch(stream)
        stream.synchronize()
    assert others
    assert np.all(np.abs(out.get() - one.power()) <= one.allowed("3xtf32", "cuda"))


def test_a_plan_refuses_other_places_and_forms(cp: Any) -> None:
    given = on_gpu(cp, sky(6, 2, 30, seed=6))
    plan = ImagePlan(*given)
    far = given[1].copy()
    far[2, 1] = np.inf
    with pytest.raises(ValueError, match="must be finite metres"):
        plan(given[0], far, *given[2:])
    with pytest.raises(ValueError, match="frequencies must be finite and positive"):
        plan(*given[:2], -given[2], given[3])
    with pytest.raises(ValueError, match="directions must be float64 \\(30, 2\\) as planned"):
        plan(*given[:3], given[3][:20])
    with pytest.raises(ValueError, match="directions must have the planned type"):
        plan(*given[:3], given[3].get())
    with pytest.raises(ValueError, match="have no plan on a GPU"):
        ImagePlan(*given, precision="fp64")
    assert "image_fp32_6x1" in plan.describe()
