"""Our GPU transforms against fp64: every plan, length and precision; strides, scales, places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, dft, fft_backend
from argand.device import Device
from argand.dft.candidates import candidates
from argand.dft.heuristics import own_plan
from argand.dft.legality import wide_fits
from argand.dft.method import Method, bluestein, dense, method_for, product, rader
from argand.dft.plan import Plan, TwoFactorPlan, dft_source
from argand.runtime.compile.compiler import compile_all

from tests.kernels.precisions import TENSOR
from tests.normal import normal
from workflow.accuracy.transform_bounds import plan_bound

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
LENGTHS = (
    1, 2, 3, 5, 8, 16, 17, 31, 33, 48, 64, 67, 97, 100, 127, 128, 129, 131, 191, 251, 256, 257, 360,
    331, 375, 383, 457, 509, 512, 521, 1000, 1009, 1024, 2039, 4093, 4095, 8191, 10007, 16384,
    32768, 65536, 131072,
)  # fmt: skip
CONVOLUTIONS = [
    rader(31, product(6, 5)), rader(113, product(16, 7)), rader(397, product(44, 9)),
    rader(1009, product(36, 28)), rader(1009, product(16, 63)), rader(8191, product(91, 90)),
    bluestein(31, product(8, 8)), bluestein(100, product(12, 10)),
    bluestein(10007, product(112, 90)),
]  # fmt: skip
LARGE = [method_for(1 << 14), method_for(1 << 15)]  # fmt: skip
MAX_PLANS = 4
"""Plans of a kind that are compiled and run of each method."""


def exact(x: Array, **options: Any) -> Array:
    inverse = options.pop("inverse", False)
    return (np.fft.ifft if inverse else np.fft.fft)(x.astype(complex), **options)


def check(
    cp: Any, x: Array, precision: str, expected: Array | None = None, **options: Any
) -> Array:
    """Every row within the bound of what runs, and every element written."""
    from argand.dft.gpu import plan_of

    plan = plan_of(cp.asarray(x), precision=precision, **options).plan
    out = cp.full(x.shape, np.nan, np.complex64)
    assert dft(cp.asarray(x), precision=precision, out=out, **options) is out
    found = out.get()
    expected = exact(x, **options) if expected is None else expected
    assert np.isfinite(found).all()
    size = np.linalg.norm(expected, axis=-1)
    error = np.linalg.norm(found - expected, axis=-1)
    assert (error <= plan_bound(plan, PRECISIONS[precision], x.shape[-1]) * size).all()
    if precision in ("3xfp16", "3xtf32"):
        assert (error <= 1e-6 * size).all()
    return found


def own(gpu: Device, method: Method, precision: str) -> Plan | None:
    wide = wide_fits(method.kind, method.length, method.length)
    return own_plan(method, PRECISIONS[precision], gpu.require_arch(), wide=wide)


def compile_plans(gpu: Device, plans: Iterable[Plan | None], precision: str) -> None:
    """By all cores: a kernel takes a second or three."""
    row, target = PRECISIONS[precision], gpu.require_arch().target
    compile_all((dft_source(plan, row), target) for plan in plans if plan is not None)


@pytest.fixture(scope="module", params=TENSOR)
def precision(request: pytest.FixtureRequest, gpu: Device) -> str:
    """A precision, our own kernels for all LENGTHS compiled."""
    compile_plans(gpu, (own(gpu, method_for(n), request.param) for n in LENGTHS), request.param)
    return str(request.param)


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(
    cp: Any, gpu: Device, rng: np.random.Generator, length: int, precision: str
) -> None:
    from argand.dft.gpu import PLAN_OVERRIDE

    method = method_for(length)
    with PLAN_OVERRIDE.use(own(gpu, method, precision)):  # also where the choice would take cuFFT
        for rows in (1, 37):
            x = normal(rng, rows, length)
            x[0, 1:] = 0
            check(cp, x, precision)
        for norm in ("backward", "ortho", "forward"):
            check(cp, x, precision, inverse=True, norm=norm)
    check(cp, x, precision)


@pytest.mark.pairwise
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("precision", ["3xfp16", "3xtf32"])
@pytest.mark.parametrize(
    "method",
    [dense(n) for n in (2, 13, 64, 67, 251, 331, 509)]
    + [product(*n) for n in ((2, 3), (16, 16), (24, 15), (40, 25), (120, 100))]
    + CONVOLUTIONS
    + LARGE,
    ids=str,
)
def test_every_plan(
    cp: Any, gpu: Device, rng: np.random.Generator, method: Method, wide: bool, precision: str
) -> None:
    from argand.dft.gpu import PLAN_OVERRIDE

    x = normal(rng, 700 if method.length < 1000 else 301, method.length)
    if wide and not wide_fits(method.kind, method.length, method.length):
        pytest.skip("such rows cannot be copied by 16 bytes")
    every = candidates(method, PRECISIONS[precision], gpu.require_arch(), wide=wide)
    assert every or method.kind == "product"
    kinds: dict[tuple[str, bool], list[Plan]] = {}
    for plan in every:
        kinds.setdefault((plan.kind, getattr(plan, "rader", False)), []).append(plan)
    plans = [plan for some in kinds.values() for plan in some[:: -(-len(some) // MAX_PLANS)]]
    compile_plans(gpu, plans, precision)
    there, back = exact(x), exact(x[:33], inverse=True)
    found = []
    for plan in plans:
        with PLAN_OVERRIDE.use(plan):
            found.append(check(cp, x, precision, there))
            check(cp, x[:33], precision, back, inverse=True)
    # Neither who shares the work nor who moves it changes a bit of the same two factors.
    same: dict[tuple[int, int], Array] = {}
    for plan, result in zip(plans, found, strict=True):
        if isinstance(plan, TwoFactorPlan):
            np.testing.assert_array_equal(result, same.setdefault((plan.n1, plan.n2), result))


@pytest.mark.parametrize(
    "length", [37, 97, 116, 127, 251, 509, 29 * 31, 1009, 8191, 1 << 14, 1 << 15]
)
def test_a_transform_does_not_depend_on_its_neighbours(
    cp: Any, rng: np.random.Generator, length: int
) -> None:
    x = normal(rng, 50, length)
    together = dft(cp.asarray(x)).get()
    for row in (0, 13, 49):
        alone = dft(cp.asarray(x[row : row + 1])).get()
        np.testing.assert_array_equal(alone[0], together[row])
    x[20, 0], x[21, -1] = np.nan, np.inf
    found = dft(cp.asarray(x)).get()
    assert not np.isfinite(found[20:22]).any()
    kept = np.r_[0:20, 22:50]
    np.testing.assert_array_equal(found[kept], together[kept])


@pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
@pytest.mark.parametrize("length", [37, 97, 116, 251, 509, 29 * 31, 1009, 8191, 10_007])
def test_amplitude_does_not_matter(
    cp: Any, rng: np.random.Generator, length: int, precision: str
) -> None:
    x = normal(rng, 20, length)
    plain = dft(cp.asarray(x), precision=precision, norm="ortho").get()
    powers = np.float32(2.0) ** np.linspace(-110, 110, 20).astype(int)[:, None].astype(np.float32)
    found = dft(cp.asarray(x * powers), precision=precision, norm="ortho").get()
    np.testing.assert_array_equal(found, plain * powers)
    assert (dft(cp.zeros((3, length), np.complex64), precision=precision).get() == 0).all()


@pytest.mark.parametrize("length", [37, 58, 97, 116, 124, 407, 37 * 30, 29 * 31, 1009, 40])
def test_strides_and_places(cp: Any, rng: np.random.Generator, length: int) -> None:
    x = normal(rng, 6, 8, 2 * length + 4)
    given = cp.asarray(x)
    for view in (
        np.s_[:, :, :length], np.s_[:, :, 1 : length + 1], np.s_[::2, :, 3 : length + 3],
        np.s_[:, ::3, :length], np.s_[:, :, : 2 * length : 2], np.s_[::-1, :, :length],
    ):  # fmt: skip
        expected = exact(x[view])
        found = dft(given[view]).get()
        assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)
        poisoned = cp.full(x.shape, np.nan, np.complex64)
        dft(given[view], out=poisoned[view])
        np.testing.assert_array_equal(poisoned[view].get(), found)
        mask = np.ones(x.shape, bool)
        mask[view] = False
        assert np.isnan(poisoned.get()[mask]).all()  # nothing is written beside it
    for axis in (0, 1):
        for n in (None, 5, 11):
            expected = exact(x, n=n, axis=axis)
            found = dft(given, axis, n=n).get()
            assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("length", [58, 97, 116, 251, 37 * 30, 29 * 31, 1009])
def test_in_place_and_overlapping(cp: Any, rng: np.random.Generator, length: int) -> None:
    x = cp.asarray(normal(rng, 3000, length))
    expected = dft(x).get()
    shifted = cp.concatenate([x, x[:1]])
    dft(shifted[:-1], out=shifted[1:])
    np.testing.assert_array_equal(shifted[1:].get(), expected)
    assert dft(x, out=x) is x
    np.testing.assert_array_equal(x.get(), expected)


def test_other_types_and_empty(cp: Any, rng: np.random.Generator) -> None:
    for dtype in (np.int16, np.float16, np.float32, np.float64, np.complex128):
        x = (100 * rng.standard_normal((5, 96))).astype(dtype)
        found = dft(cp.asarray(x), precision="3xfp16")
        assert found.dtype == np.complex64
        expected = exact(x.astype(np.complex64))
        assert np.linalg.norm(found.get() - expected) <= 1e-6 * np.linalg.norm(expected)
    assert dft(cp.zeros((0, 5), np.complex64)).shape == (0, 5)
    assert dft(cp.zeros((3, 0), np.complex64), n=4).shape == (3, 4)


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_the_library_says_so(cp: Any, rng: np.random.Generator, precision: str) -> None:
    from argand.dft.gpu import plan_of

    x = normal(rng, 7, 90).astype(PRECISIONS[precision].output)
    for inverse in (False, True):
        found = dft(cp.asarray(x), precision=precision, inverse=inverse).get()
        expected = exact(x, inverse=inverse)
        limit = 1e-6 if precision == "fp32" else 1e-14
        assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)
    assert str(plan_of(cp.asarray(x), precision=precision)).startswith("cufft: ")


def test_scipy_takes_our_backend(cp: Any, rng: np.random.Generator) -> None:
    fft = pytest.importorskip("scipy.fft")
    x = normal(rng, 4, 97, 3)
    with fft.set_backend(fft_backend, only=True):
        found = fft.fft(cp.asarray(x), axis=1)
        back = fft.ifft(found, axis=1, norm="backward")
        wide = fft.fft(cp.asarray(x).astype(complex), 90, axis=1)
    assert found.dtype == np.complex64
    assert wide.dtype == np.complex128
    expected = exact(x, axis=1)
    assert 1e-9 < np.linalg.norm(found.get() - expected) / np.linalg.norm(expected) < 1e-6
    assert np.linalg.norm(back.get() - x) / np.linalg.norm(x) < 1e-6
    np.testing.assert_allclose(wide.get(), exact(x, n=90, axis=1), atol=1e-12)
