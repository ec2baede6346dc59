"""Images on a GPU: every direction of every precision, with the result poisoned first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, image, launched
from argand.device import gpu
from argand.image.few_antennas_plan import MAX_ANTENNAS
from argand.image.heuristics import PLAN_OVERRIDE, plan_image
from argand.image.plan import MmaImagePlan
from argand.image.problem import MAX_TURNS, SPEED_OF_LIGHT, ImageProblem

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
    one = SKIES["an odd array"]
    with PLAN_OVERRIDE.use(MmaImagePlan(directions, 1)), launched() as names:
        found = imaged(cp, one, precision)
    assert any(f"_{directions}x1" in name for name in names)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


@pytest.mark.parametrize("name", ["few antennas", "most of few antennas"])
def test_few_antennas_at_fp32_take_their_kernel(cp: Any, name: str) -> None:
    with launched() as names:
        imaged(cp, SKIES[name], "fp32")
    assert any("image_fp32" in kernel for kernel in names), names


@pytest.mark.parametrize("precision", ["tf32", "3xtf32", "3xfp16", "fp16", "bf16"])
@pytest.mark.parametrize("name", ["one antenna", "few antennas", "many channels", "few and wide"])
def test_few_antennas_are_those_of_fp32(cp: Any, name: str, precision: str) -> None:
    """At any precision: within what 3xtf32 may be off by, and by tensor cores the same."""
    one = SKIES[name]
    with launched() as names:
        found = imaged(cp, one, precision)
    assert any("image_fp32" in kernel for kernel in names), names
    assert np.all(np.abs(found - one.power()) <= one.allowed("3xtf32", "cuda"))
    with PLAN_OVERRIDE.use(MmaImagePlan(32, 1)), launched() as names:
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
    far = MAX_TURNS / 2 * SPEED_OF_LIGHT / one.frequencies[0]
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


@pytest.mark.parametrize("name", ["few antennas", "two panels", "many channels"])
def test_directions_of_two_columns_on_either_side(cp: Any, name: str) -> None:
    """Directions may be on the host or the GPU, in a first call and in those that repeat it."""
    one = SKIES[name]
    r, x, f, lm = one.arguments
    vectors, power = np.column_stack([lm, np.sqrt(1 - (lm**2).sum(axis=1))]), one.power()
    for directions in (lm, vectors, cp.asarray(lm), cp.asarray(vectors)):
        for _ in range(3):
            found = image(cp.asarray(r), x, f, directions, precision="3xtf32").get()
            assert np.all(np.abs(found - power) <= one.allowed("3xtf32", "cuda"))


def test_positions_and_frequencies_on_a_gpu(cp: Any) -> None:
    """They are read from there at each call, between others of the same sizes."""
    one = sky(9, 2, 120, seed=19)
    r, x, f, s = one.arguments
    for positions, frequencies in ((x, f), (cp.asarray(x), f), (x, cp.asarray(f)), (x, list(f))):
        for _ in range(3):
            found = image(cp.asarray(r), positions, frequencies, cp.asarray(s)).get()
            assert np.all(np.abs(found - one.power()) <= one.allowed("3xtf32", "cuda"))


def test_a_repeated_call_takes_other_numbers(cp: Any) -> None:
    """Positions, frequencies, covariances and directions change within the same arrays."""
    r, x, f, s = (np.array(given) for given in sky(13, 2, 300, seed=14).arguments)
    on_gpu, toward = cp.asarray(r), cp.asarray(s)
    for step in range(3):
        r *= 1 + step
        x += 3.0 * np.arange(39).reshape(13, 3) * step
        f *= 1 + step / 8
        s *= 0.9
        on_gpu.set(r)
        toward.set(s)
        one = Sky(r, x, f, s)
        found = image(on_gpu, x, f, toward, precision="3xtf32").get()
        assert np.all(np.abs(found - one.power()) <= one.allowed("3xtf32", "cuda"))


@pytest.mark.parametrize("antennas", [4, 40, 130])
def test_a_repeated_call_refuses_what_a_first_one_does(cp: Any, antennas: int) -> None:
    r, x, f, s = (np.array(given) for given in sky(antennas, 2, 9, seed=15).arguments)
    good = cp.asarray(r), x, f, cp.asarray(s)
    expected = image(*good).get()

    def refused(words: str, *given: Any) -> None:
        for _ in range(2):
            with pytest.raises(ValueError, match=words):
                image(*given)
        np.testing.assert_array_equal(image(*good).get(), expected)

    leaning = r.copy()
    leaning[1, 2, 1] += np.abs(r).max()
    refused("must be Hermitian.*one of channel 1", cp.asarray(leaning), x, f, good[3])
    long, wrong = s.copy(), s.copy()
    long[7], wrong[3, 1] = (0.8, 0.7), np.nan
    refused(r"must not be longer than 1.*directions\[7\]", good[0], x, f, cp.asarray(long))
    refused("must be finite direction cosines", good[0], x, f, cp.asarray(wrong))
    refused("must not be longer than 1", cp.asarray(leaning), x, f, long)
    x[2, 1] = np.inf
    with pytest.raises(ValueError, match="must be finite metres"):
        image(*good)
    x[2, 1] = 1.0
    f[1] = -f[1]
    with pytest.raises(ValueError, match="frequencies must be finite and positive"):
        image(*good)


@pytest.mark.parametrize("precision", ["fp16", "3xfp16"])
@pytest.mark.parametrize("antenna", [3, 41, 99])
def test_the_scale_is_that_of_the_largest_entry(cp: Any, precision: str, antenna: int) -> None:
    """Whichever block of the checks finds it."""
    one = sky(100, 1, 70, seed=18)
    one.covariances[0, antenna, antenna] *= 2.0**30
    found = imaged(cp, one, precision)
    assert np.all(np.abs(found - one.power()) <= one.allowed(precision, "cuda"))


def test_unit_vectors_may_be_beyond_1_by_rounding(cp: Any) -> None:
    r, x, f, _ = sky(4, 2, 3).arguments
    s = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1 + 4e-13]])
    assert np.isfinite(image(cp.asarray(r), x, f, cp.asarray(s)).get()).all()
    with pytest.raises(ValueError, match="must not be longer than 1"):
        image(cp.asarray(r), x, f, cp.asarray(s * (1 + 2e-12)))


def test_the_result_may_be_where_an_operand_is(cp: Any) -> None:
    one = sky(12, 1, 144, seed=16)
    r, x, f, s = one.arguments
    for _ in range(2):
        covariances, directions = cp.asarray(r), cp.asarray(s)
        out = covariances.view(np.float32).reshape(-1)[:144]
        assert image(covariances, x, f, directions, precision="3xtf32", out=out) is out
        assert np.all(np.abs(out.get() - one.power()) <= one.allowed("3xtf32", "cuda"))
        out = directions.view(np.float32).reshape(-1)[:144]
        assert image(cp.asarray(r), x, f, directions, precision="3xtf32", out=out) is out
        assert np.all(np.abs(out.get() - one.power()) <= one.allowed("3xtf32", "cuda"))


def test_threads_and_streams_have_their_own_words(cp: Any) -> None:
    """Calls that are refused, beside others that are not."""
    r, x, f, s = sky(6, 3, 500, seed=17).arguments
    leaning = r + np.triu(np.ones((6, 6)), 1) * np.abs(r).max()
    expected = image(cp.asarray(r), x, f, s).get()

    def many(number: int) -> None:
        with cp.cuda.Stream(non_blocking=True):
            given = cp.asarray(leaning.astype(r.dtype) if number % 2 else r), x, f, cp.asarray(s)
            for _ in range(30):
                if number % 2:
                    with pytest.raises(ValueError, match="must be Hermitian"):
                        image(*given)
                else:
                    np.testing.assert_array_equal(image(*given).get(), expected)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(many, range(6)))


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


@pytest.mark.parametrize("antennas", [13, 229])
@pytest.mark.parametrize("splits", [1, 2, 5, 7, 20])
def test_any_number_of_splits_computes_the_same(
    cp: Any, monkeypatch: pytest.MonkeyPatch, antennas: int, splits: int
) -> None:
    """Splits divide channels and, on tensor cores, pairs of panels; two channels have 20 pairs."""
    one = sky(antennas, 2, 70, leading=(2,), seed=20)
    few, launches = antennas <= MAX_ANTENNAS, import_module("argand.image.launches")
    monkeypatch.setattr(launches, "splits_of", lambda *_: min(splits, 2) if few else splits)
    row = PRECISIONS["3xtf32"]
    with cp.cuda.Device(0):
        r, x, f, s = one.arguments
        vectors = cp.asarray(np.column_stack([s, np.sqrt(1 - (s**2).sum(axis=1))]))
        problem = ImageProblem((2,), 2, antennas, 70, row, 1)
        plan = plan_image(problem, gpu(0))
        assert plan is not None
        out = cp.full(problem.shape, np.nan, "f4")
        queue = launches.ImageLaunches(problem, plan, 3, gpu(0))
        assert queue(cp.asarray(r).data.ptr, x, f, vectors.data.ptr, out.data.ptr)
    assert np.all(np.abs(out.get() - one.power()) <= one.allowed("3xtf32", "cuda"))
