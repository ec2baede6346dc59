"""Our GPU products against the CPU model, which rounds alike, and against fp64.

Tolerance. Both sides multiply the same rounded operands, so they differ only by how 2 k products of
real numbers are summed in fp32: by at most (2 k + 16) u |A||B| each, u = 2^-24 where sums are
rounded (BLAS, promoted sums) and 2^-22 where a tensor core sums, which truncates (2^-23) after
aligning to the largest addend. The 16 covers alpha, beta and undoing a scale. With `terms` terms
there are three times as many products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm, get_precision
from argand.precision import ROUNDINGS

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
TENSOR = [name for name, row in PRECISIONS.items() if not row.exact_operands]
SCALED = [name for name, row in PRECISIONS.items() if row.scaled]
SPLIT = [name for name, row in PRECISIONS.items() if row.terms > 1]
OPS = ("N", "T", "C")


def normal(rng: np.random.Generator, *shape: int) -> Array:
    both = rng.standard_normal((*shape, 2), dtype=np.float32)
    return both.view(np.complex64)[..., 0]


def stored(x: Array, op: str) -> Array:
    """The array whose op is x."""
    if op == "N":
        return x
    y = np.swapaxes(x, -1, -2)
    return np.ascontiguousarray(y.conj() if op == "C" else y)


def summation(k: int, precision: str) -> float:
    """The tolerance of the module's docstring, relative to |alpha| |A||B| + |beta| |C|."""
    if PRECISIONS[precision].output == "complex128":
        return (2 * k + 16) * 2 * 2.0**-53
    unit = 2.0**-24 if PRECISIONS[precision].exact_operands else 2.0**-22
    return (2 * k * len(PRECISIONS[precision].products) + 16) * (unit + 2.0**-24)


def parts(x: Array) -> Array:
    return np.maximum(np.abs(x.real), np.abs(x.imag)) + np.minimum(np.abs(x.real), np.abs(x.imag))


def check(cp: Any, a: Array, b: Array, c: Array | None = None, **how: Any) -> None:
    """Compare with the model and with fp64; every element, none of them left unwritten."""
    precision = get_precision(how.get("precision", "fp32"))
    model = gemm(a, b, c, **how)
    out = cp.full(model.shape, np.nan, model.dtype)
    returned = gemm(cp.asarray(a), cp.asarray(b), None if c is None else cp.asarray(c),
                    out=out, **how)  # fmt: skip
    assert returned is out
    found = out.get()
    assert np.isfinite(found).all()
    wide = {"precision": "fp64"} | {
        k: v for k, v in how.items() if k.startswith(("op", "al", "be"))
    }
    exact = gemm(a, b, c, **wide)
    size = magnitude(a, b, c, **how)
    k = a.shape[-1] if how.get("op_a", "N") == "N" else a.shape[-2]
    slack = summation(k, precision.name) * size
    assert_within(found, model, slack)
    # fp64 bound: operands wrong by u each (2 u + u^2 of a product), products dropped, summation.
    # A number below the format's normal range is wrong by half its smallest step instead: with
    # rows scaled to 2^14 and values of order one that lies under the summation's slack.
    rounding = 2 * precision.u + precision.u**2 + precision.dropped
    assert_within(found, exact, slack + rounding * size)


def magnitude(a: Array, b: Array, c: Array | None, **how: Any) -> Array:
    turn = {"N": lambda x: x}.get
    left, right = (
        (turn(op) or (lambda x: np.swapaxes(x, -1, -2)))(parts(x).astype(np.float64))
        for x, op in ((a, how.get("op_a", "N")), (b, how.get("op_b", "N")))
    )
    size = abs(how.get("alpha", 1)) * (left @ right) * np.sqrt(2)
    beta = how.get("beta", 0)
    return size + abs(beta) * np.abs(c) if beta != 0 and c is not None else size


def assert_within(found: Array, expected: Array, allowed: Array) -> None:
    for error in (np.abs(found.real - expected.real), np.abs(found.imag - expected.imag)):
        excess = error - allowed
        assert (excess <= 0).all(), f"off by {error.max()}, allowed {allowed[excess > 0].min()}"


def repeats_bit_for_bit(call: Callable[[], Any]) -> bool:
    """Whether a product gives the same bits each time."""
    first = call()
    return all(bool((call() == first).all()) for _ in range(5))


POWERS = [(26, 26), (-60, 40), (90, 10), (-100, -10), (60, -130)]


def of_any_scale(rng: np.random.Generator, power: tuple[int, int]) -> list[Array]:
    """A (40, 64) and B (64, 30) of these powers of two, their rows and columns scaled further."""
    a, b = normal(rng, 40, 64), normal(rng, 64, 30)
    a *= np.float32(2.0) ** rng.integers(-8, 9, (40, 1)).astype(np.float32)
    b *= np.float32(2.0) ** rng.integers(-8, 9, (1, 30)).astype(np.float32)
    return [
        np.ldexp(x.view(np.float32), p).view(np.complex64)
        for x, p in zip((a, b), power, strict=True)
    ]


def nonfinite(rng: np.random.Generator) -> tuple[Array, Array]:
    """A (70, 64) with a NaN in row 3, B (64, 70) with an infinity in column 60."""
    a, b = normal(rng, 70, 64), normal(rng, 64, 70)
    a.view(np.uint32)[3, 10] = 0x7FFFFFFF  # the NaN that an addition of half an ulp would wrap
    b[5, 60] = np.inf
    return a, b


def assert_contained(found: Array) -> None:
    """The product of `nonfinite` operands is finite but in that row and that column."""
    clean = np.ones(found.shape, bool)
    clean[3], clean[:, 60] = False, False
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[:, 60]).any()
    assert np.isfinite(found[clean]).all()


def long_operands(rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """A (128, k) and B (k, 128) of short to long k."""
    for k in (256, 4096, 16384):
        yield normal(rng, 128, k), normal(rng, k, 128)


def relative_error(found: Array, a: Array, b: Array) -> float:
    """||C^ - C||_F / ||C||_F against fp64."""
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


SHAPES = [
    (1, 1, 1), (1, 7, 3), (5, 1, 9), (2, 3, 1), (16, 8, 8), (17, 31, 13), (97, 101, 103),
    (128, 128, 32), (129, 127, 65), (64, 1, 200), (1, 257, 64), (33, 300, 259), (256, 256, 1031),
]  # fmt: skip


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", SHAPES, ids="x".join(["{0[0]}", "{0[1]}", "{0[2]}"]).format)
def test_shapes(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    check(cp, normal(rng, m, k), normal(rng, k, n), precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_with_alpha_and_beta(
    cp: Any, rng: np.random.Generator, precision: str, op_a: str, op_b: str
) -> None:
    a, b, c = normal(rng, 37, 50), normal(rng, 50, 44), normal(rng, 37, 44)
    check(
        cp, stored(a, op_a), stored(b, op_b), c, op_a=op_a, op_b=op_b, precision=precision,
        alpha=0.5 - 2j, beta=-1.25 + 0.75j,
    )  # fmt: skip


@pytest.mark.parametrize("precision", ["tf32", "3xtf32"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_roundings_are_the_models(
    cp: Any, rng: np.random.Generator, precision: str, rounding: str
) -> None:
    """One product of one pair is exact in fp32 for tf32, so the rounding shows bit for bit."""
    a, b = normal(rng, 64, 1), np.ones((1, 1), np.complex64)
    a = np.concatenate([a.real, a.real.view(np.int32).__or__(0xFFF).view(np.float32)])
    a = a.astype(np.complex64)
    model = gemm(a, b, precision=precision, rounding=rounding)
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision, rounding=rounding).get()
    if precision == "tf32":
        np.testing.assert_array_equal(found, model)
    else:  # big + small has 22 bits: a truncating sum may lose the last of 24
        np.testing.assert_allclose(found, model, rtol=2.0**-22)
    check(cp, normal(rng, 40, 100), normal(rng, 100, 24), precision=precision)


def test_the_two_fp16_terms_are_the_models(cp: Any, rng: np.random.Generator) -> None:
    """A row of one number that is multiplied by one: hi + lo, scaled back, comes out.

    hi + lo takes 24 bits at most and a truncating sum may lose the last. A second number that sets
    the scale, and that zero multiplies, shows what falls below fp16's range: it is the model's.
    """
    values = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(-45, 0, 4000)).astype(np.float32)
    a = np.stack([values, np.full(4000, 1.5, np.float32)], axis=1).astype(np.complex64)
    b = np.array([[1], [0]], np.complex64)
    model = gemm(a, b, precision="3xfp16")
    found = gemm(cp.asarray(a), cp.asarray(b), precision="3xfp16").get()
    np.testing.assert_allclose(found, model, rtol=2.0**-22)
    assert (np.abs(model - a[:, :1]) > 2.0**-22 * np.abs(a[:, :1])).any()


@pytest.mark.parametrize("precision", TENSOR)
def test_small_integers_are_exact(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Products and sums below 2^24 of integers that every format holds."""
    a, b = (
        (rng.integers(-8, 9, shape) + 1j * rng.integers(-8, 9, shape)).astype(np.complex64)
        for shape in ((3, 130, 200), (3, 200, 70))
    )
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    np.testing.assert_array_equal(found, a @ b)


def views(cp: Any, x: Array) -> dict[str, Callable[[], Any]]:
    rows, columns = x.shape

    def strided() -> Any:
        wide = cp.zeros((2 * rows, 3 * columns), x.dtype)
        wide[::2, ::3] = cp.asarray(x)
        return wide[::2, ::3]

    def odd_pitch() -> Any:
        wide = cp.zeros((rows, columns + 1), x.dtype)
        wide[:, 1:] = cp.asarray(x)
        return wide[:, 1:]

    return {
        "fortran": lambda: cp.asfortranarray(cp.asarray(x)),
        "reversed": lambda: cp.asarray(np.ascontiguousarray(x[::-1, ::-1]))[::-1, ::-1],
        "strided": strided,
        "odd pitch": odd_pitch,
    }


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", ["fortran", "reversed", "strided", "odd pitch"])
def test_layouts_give_the_same_bits(
    cp: Any, rng: np.random.Generator, precision: str, layout: str
) -> None:
    a, b = normal(rng, 67, 90), normal(rng, 90, 131)
    plain = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    moved = gemm(views(cp, a)[layout](), views(cp, b)[layout](), precision=precision).get()
    assert np.abs(moved - plain).max() <= summation(90, precision) * magnitude(a, b, None).max()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("left", "right"),
    [((5,), (5,)), ((1,), (4,)), ((3, 1), (1, 2)), ((2, 3), ()), ((), (2, 2)), ((0,), (1,))],
)
def test_batches(
    cp: Any,
    rng: np.random.Generator,
    precision: str,
    left: tuple[int, ...],
    right: tuple[int, ...],
) -> None:
    check(cp, normal(rng, *left, 19, 33), normal(rng, *right, 33, 21), precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(
    cp: Any, rng: np.random.Generator, precision: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
    check(cp, a, b, precision=precision)
    check(cp, a, b, c, beta=2j, precision=precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_c_is_not_read_where_beta_is_zero(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.asarray(normal(rng, 20, 30)), cp.asarray(normal(rng, 30, 40))
    c = cp.full((20, 40), np.nan, np.complex64)
    assert bool(cp.isfinite(gemm(a, b, c, precision=precision)).all())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_alpha_zero_does_not_form_the_product(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = cp.full((20, 30), np.nan, np.complex64), cp.asarray(normal(rng, 30, 40))
    c = cp.asarray(normal(rng, 20, 40))
    found = gemm(a, b, c, alpha=0, beta=2, precision=precision)
    np.testing.assert_array_equal(found.get(), 2 * c.get())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_out_may_be_c_or_an_operand(cp: Any, rng: np.random.Generator, precision: str) -> None:
    dtype = PRECISIONS[precision].output
    a, b, c = (cp.asarray(normal(rng, 150, 150)).astype(dtype) for _ in range(3))
    expected = gemm(a, b, c, beta=0.5j, precision=precision).get()
    target = c.copy()
    assert gemm(a, b, target, beta=0.5j, precision=precision, out=target) is target
    np.testing.assert_array_equal(target.get(), expected)
    target = a.copy()
    gemm(target, b, c, beta=0.5j, precision=precision, out=target)
    np.testing.assert_array_equal(target.get(), expected)
    turned = cp.empty((150, 150), dtype).T
    gemm(a, b, c, beta=0.5j, precision=precision, out=turned)
    np.testing.assert_array_equal(turned.get(), expected)
    shifted = c.T  # overlaps its transpose, element by element elsewhere
    gemm(a, b, shifted, beta=0.5j, precision=precision, out=c)
    assert bool(cp.isfinite(c).all())


@pytest.mark.parametrize("precision", PRECISIONS)
def test_remembered_calls(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Calls of one form at other addresses, where arrays overlap, and with C of another type."""
    dtype = PRECISIONS[precision].output
    a, b, c = (normal(rng, 24, 24).astype(dtype) for _ in range(3))
    other = "complex64" if dtype == "complex128" else "complex128"
    plain, added = gemm(a, b, precision=precision), gemm(a, b, c, beta=0.5, precision=precision)
    slack = summation(24, precision) * magnitude(a, b, c, beta=0.5)
    for _ in range(3):
        x, y, z = (cp.array(value) for value in (a, b, c))
        assert_within(gemm(x, y, precision=precision).get(), plain, slack)
        out = cp.full_like(z, np.nan)
        for addend in (z, z.astype(other)):
            assert gemm(x, y, addend, beta=0.5, precision=precision, out=out) is out
            assert_within(out.get(), added, slack)
        gemm(x, y, precision=precision, out=out)
        assert_within(out.get(), plain, slack)
        gemm(x, y, z, beta=0.5, precision=precision, out=z)
        assert_within(z.get(), added, slack)
        gemm(x, y, precision=precision, out=x)
        assert_within(x.get(), plain, slack)


def test_out_is_c_transposed(cp: Any, rng: np.random.Generator) -> None:
    a, b, c = (cp.asarray(normal(rng, 150, 150)) for _ in range(3))
    expected = gemm(a, b, c.T.copy(), beta=1, precision="tf32").get()
    np.testing.assert_array_equal(gemm(a, b, c.T, beta=1, precision="tf32", out=c).get(), expected)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16"])
def test_other_types_are_cast(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = rng.standard_normal((20, 30)), rng.integers(-5, 6, (30, 10))
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision)
    model = gemm(a, b, precision=precision)
    assert found.dtype == model.dtype == np.complex64
    slack = summation(30, precision) * magnitude(a.astype(complex), b.astype(complex), None)
    assert_within(found.get(), model, slack)


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("power", POWERS)
def test_scaled_precisions_take_any_scale(
    cp: Any, rng: np.random.Generator, precision: str, power: tuple[int, int]
) -> None:
    """Rows and columns of very different size: values far beyond fp16's range, and subnormals."""
    scaled = of_any_scale(rng, power)
    model = gemm(*scaled, precision=precision)
    found = gemm(*(cp.asarray(x) for x in scaled), precision=precision).get()
    size = magnitude(scaled[0].astype(complex), scaled[1].astype(complex), None)
    assert_within(found, model, summation(64, precision) * size + 2.0**-149)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize(("left", "right"), [(1e-30, 1.0), (1.0, 1e30), (1e30, 1e-30)])
def test_amplitude_does_not_matter(
    cp: Any, rng: np.random.Generator, precision: str, left: float, right: float
) -> None:
    a, b = normal(rng, 70, 90) * np.float32(left), normal(rng, 90, 40) * np.float32(right)
    a[3], a[:, 7], b[11], b[:, 5] = 0, 0, 0, 0
    check(cp, a, b, precision=precision)
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    assert not found[3].any()
    assert not found[:, 5].any()


@pytest.mark.parametrize("precision", SCALED)
@pytest.mark.parametrize("k", [1, 60, 1031])
def test_lines_that_spread_as_a_covariance_does(
    cp: Any, rng: np.random.Generator, precision: str, k: int
) -> None:
    """Elements of 1 to 1e8, against the model and against fp64 by the a-priori bound.

    What is below fp16's range is off by `Precision.scaled_floor` of its line's largest, each real
    part, in both terms' products (the derivation stands in workflow/accuracy/bounds.py).
    """
    row = PRECISIONS[precision]
    a, b = (
        normal(rng, *shape) * np.float32(1e8) ** rng.random(shape, dtype=np.float32)
        for shape in ((50, k), (k, 40))
    )
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
    size = magnitude(a, b, None)
    slack = summation(k, precision) * size
    assert_within(found, gemm(a, b, precision=precision), slack)
    wide_a, wide_b = parts(a).astype(float), parts(b).astype(float)
    tops = wide_a.max(axis=1, keepdims=True), wide_b.max(axis=0)
    floor = row.scaled_floor * (
        tops[0] * wide_b.sum(axis=0) + wide_a.sum(axis=1, keepdims=True) * tops[1]
    )
    floor += 2 * k * row.scaled_floor**2 * tops[0] * tops[1]
    rounding = 2 * row.u + row.u**2 + row.dropped
    exact = a.astype(np.complex128) @ b.astype(np.complex128)
    assert_within(found, exact, slack + rounding * size + 2 * floor)


@pytest.mark.parametrize("precision", TENSOR)
def test_nonfinite_stays_in_its_row_and_column(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    a, b = nonfinite(rng)
    assert_contained(gemm(cp.asarray(a), cp.asarray(b), precision=precision).get())


@pytest.mark.parametrize("precision", SPLIT)
def test_the_error_of_a_split_does_not_grow_with_k(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """Promotion: unpromoted, the truncating tensor core is off by 3e-5 or more at k = 4096."""
    for a, b in long_operands(rng):
        found = gemm(cp.asarray(a), cp.asarray(b), precision=precision).get()
        assert relative_error(found, a, b) < 1e-6


@pytest.mark.parametrize("precision", TENSOR)
def test_same_call_same_bits(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a, b = cp.asarray(normal(rng, 500, 700)), cp.asarray(normal(rng, 700, 300))
    assert repeats_bit_for_bit(partial(gemm, a, b, precision=precision))
