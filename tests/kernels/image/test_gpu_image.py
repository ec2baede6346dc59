"""Images on a GPU: every direction of every precision, with the result poisoned first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, image, launched
from argand.image.plan import ImagePlan
from argand.image.problem import MOST_TURNS, SPEED_OF_LIGHT

from tests.kernels.image.arrays import Sky, sky

pytestmark = pytest.mark.gpu
SKIES = {
    "one antenna": sky(1, 1, 3),
    "one direction": sky(5, 2, 1, seed=1),
    "one panel": sky(64, 3, 257, leading=(2,), seed=2),
    "two panels": sky(65, 2, 64, seed=3, dimensions=2, kind="complex128"),
    "an odd array": sky(131, 9, 333, leading=(2, 1), seed=4),
    "many panels": sky(330, 2, 129, seed=5),
    "many channels": sky(17, 1100, 40, seed=6),
    "wide": sky(40, 2, 90, seed=7, extent=3e5),
    "few antennas": sky(4, 39, 1003, leading=(2, 3), seed=10),
    "few antennas of one image": sky(12, 3, 257, seed=11, dimensions=2),
    "most of few antennas": sky(24, 5, 300, leading=(3,), seed=12),
    "few and wide": sky(13, 2, 90, leading=(2,), seed=13, extent=3e5),
}


def imaged(cp: Any, one: Sky, precision: str, **options: Any) -> Any:
    """The power in memory that held NaN, on the host."""
    row = PRECISIONS[precision]
    out = cp.full((*one.covariances.shape[:-3], len(one.directions)), np.nan, row.real_output)
    arguments = [cp.asarray(given) for given in one.arguments]
    assert image(*arguments, precision=precision, out=out, **options) is out
    np.testing.assert_array_equal(arguments[0].get(), one.covariances)
    return out.get()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", SKIES)
def test_power_is_the_direct_sum_within_the_bound(cp: Any, name: str, precision: str) -> None:
    one = SKIES[name]
    found = imaged(cp, one, precision)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "3xfp16", "fp16", "bf16"])
@pytest.mark.parametrize("directions", [32, 64, 128])
def test_every_plan_computes_the_same(cp: Any, precision: str, directions: int) -> None:
    from argand.image.gpu import PLAN_OVERRIDE

    one = SKIES["an odd array"]
    with PLAN_OVERRIDE.use(ImagePlan(directions, 1)), launched() as names:
        found = imaged(cp, one, precision)
    assert any(f"_{directions}x1" in name for name in names)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "3xfp16", "fp16", "bf16"])
@pytest.mark.parametrize("name", ["one antenna", "few antennas", "many channels", "few and wide"])
def test_few_antennas_are_those_of_fp32(cp: Any, name: str, precision: str) -> None:
    """At any precision: within what 3xtf32 may be off by, and by tensor cores the same."""
    one = SKIES[name]
    with launched() as names:
        found = imaged(cp, one, precision)
    assert any("image_fp32" in kernel for kernel in names), names
    assert np.all(np.abs(found - one.power()) <= one.allowed("3xtf32", "cuda"))
    from argand.image.gpu import PLAN_OVERRIDE

    with PLAN_OVERRIDE.use(ImagePlan(32, 1)), launched() as names:
        found = imaged(cp, one, precision)
    assert any("sm80_image" in kernel for kernel in names), names
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


def test_rounding_is_that_of_the_cpu(cp: Any) -> None:
    """Both round alike, so they differ by less than they err."""
    one = SKIES["one panel"]
    truth = one.power()
    for name in ("tf32", "fp16", "bf16"):
        found, model = imaged(cp, one, name), image(*one.arguments, precision=name)
        assert np.abs(found - model).mean() < np.abs(model - truth).mean() / 2


def test_signs_are_mirror_images(cp: Any) -> None:
    one = SKIES["one panel"]
    found = imaged(cp, one, "3xtf32", sign=-1)
    assert np.all(np.abs(found - one.power(-1)) <= one.allowed("3xtf32", "cuda"))


def test_phases_hold_far_from_the_centre(cp: Any) -> None:
    one = sky(6, 1, 40, seed=8)
    far = MOST_TURNS / 2 * SPEED_OF_LIGHT / one.frequencies[0]
    x = one.positions / np.abs(one.positions).max() * far / 2
    one = Sky(one.covariances, x, *one.arguments[2:])
    for name in ("3xtf32", "fp16"):
        found = imaged(cp, one, name)
        assert np.all(np.abs(found - one.power()) <= one.allowed(name, "cuda"))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_not_finite_leaves_no_finite_power(cp: Any, precision: str) -> None:
    one = sky(7, 2, 5, leading=(2,))
    one.covariances[1, 0, 3, 4] = one.covariances[1, 0, 4, 3] = np.nan
    found = imaged(cp, one, precision)
    assert np.isfinite(found[0]).all()
    assert not np.isfinite(found[1]).any()


@pytest.mark.parametrize("precision", ["fp32", "3xtf32", "fp16"])
def test_layouts_and_small_numbers(cp: Any, precision: str) -> None:
    one = sky(20, 3, 50, seed=9)
    small = Sky(one.covariances * np.float32(2.0**-60), *one.arguments[1:])
    turned = cp.asarray(small.covariances.transpose(2, 1, 0).copy()).transpose(2, 1, 0)
    found = image(turned, *small.arguments[1:], precision=precision).get()
    assert np.all(np.abs(found - small.power()) <= small.allowed(precision, "cuda"))


def test_wrong_covariances_are_refused(cp: Any) -> None:
    r, x, f, s = sky(4, 2, 3).arguments
    leaning = r + np.triu(np.ones((4, 4)), 1)
    for name in ("fp32", "tf32"):
        with pytest.raises(ValueError, match="must be Hermitian"):
            image(cp.asarray(leaning), x, f, s, precision=name)
    with pytest.raises(ValueError, match="must not be longer than 1"):
        image(cp.asarray(r), x, f, cp.asarray([[0.8, 0.7]]))
    with pytest.raises(TypeError, match="must both be"):
        image(cp.asarray(r), x, f, s, out=np.zeros(3, "f4"))
    empty = image(cp.asarray(r[:0]), x, f[:0], s)
    np.testing.assert_array_equal(empty.get(), np.zeros(3))
