"""The CPU's products of any shape, op, layout and type, against fp64."""

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.gemm.cpu import _descale, _factors, terms_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covers import examples
from tests.kernels.gemm.numpy_product_cases import OPS, check
from tests.kernels.precisions import SPLIT
from tests.normal import normal


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops(precision, op_a, op_b):
    rng = np.random.default_rng(1)
    a = normal(rng, *((13, 17) if op_a == "N" else (17, 13)))
    b = normal(rng, *((17, 11) if op_b == "N" else (11, 17)))
    check(a, b, precision=precision, op_a=op_a, op_b=op_b)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (1, 9, 5), (7, 1, 31), (101, 103, 97), (64, 64, 1), (2, 3, 1021)]
)
def test_odd_prime_and_single_sizes(precision, m, n, k):
    rng = np.random.default_rng(m + n + k)
    check(normal(rng, m, k), normal(rng, k, n), precision=precision)


@pytest.mark.parametrize("precision", ["fp64", "fp32", "fp16"])
def test_squared_magnitudes(precision):
    rng = np.random.default_rng(3)
    a, b, c = normal(rng, 2, 5, 7), normal(rng, 7, 4), normal(rng, 2, 5, 4)
    options = {"alpha": 2j, "beta": 0.5 - 1j, "precision": precision}
    z = gemm(a, b, c, **options)
    out = np.full(z.shape, -7, z.real.dtype)
    assert gemm(a, b, c, output="power", out=out, **options) is out
    for found in (out, gemm(a, b, c, output="power", **options)):
        np.testing.assert_array_equal(found, z.real**2 + z.imag**2)
    with pytest.raises(ValueError, match=rf"out must have .* and type {out.dtype}, got .*complex"):
        gemm(a, b, c, output="power", out=z, **options)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("batch_a", "batch_b"), [((3,), ()), ((), (2,)), ((2, 1), (3,)), ((4,), (4,)), ((1,), (5,))]
)
def test_batches_broadcast(precision, batch_a, batch_b):
    rng = np.random.default_rng(5)
    a, b = normal(rng, *batch_a, 4, 6), normal(rng, *batch_b, 6, 5)
    got = check(a, b, precision=precision)
    for index in np.ndindex(got.shape[:-2]):
        one = np.broadcast_to(a, (*got.shape[:-2], 4, 6))[index]
        other = np.broadcast_to(b, (*got.shape[:-2], 6, 5))[index]
        alone = gemm(one, other, precision=precision)
        np.testing.assert_allclose(got[index], alone, rtol=0, atol=2 * 12 * 2**-24 * 50)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_strides_do_not_matter(precision):
    rng = np.random.default_rng(6)
    a, b = normal(rng, 20, 30), normal(rng, 30, 24)
    views = [
        (a[::2, ::-1], b[::-1, ::3]),
        (np.asfortranarray(a), b),
        (a.T.copy().T, np.broadcast_to(b[:, :1], (30, 7))),
    ]
    for x, y in views:
        got = check(x, y, precision=precision)
        again = gemm(np.ascontiguousarray(x), np.ascontiguousarray(y), precision=precision)
        # The orders of summation may differ, twice the bound on one of them.
        size = np.abs(x).astype(float) @ np.abs(y).astype(float)
        assert (np.abs(got - again) <= 2 * np.sqrt(2) * 62 * 2.0**-24 * 1.01 * size).all()
        check(x, y.conj(), precision=precision)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("alpha", [1, 0, -2.5, 1j, 0.3 - 0.7j])
@pytest.mark.parametrize("beta", [0, 1, -1j, 0.1 + 3j])
def test_alpha_and_beta(precision, alpha, beta):
    rng = np.random.default_rng(8)
    a, b, c = normal(rng, 9, 12), normal(rng, 12, 10), normal(rng, 9, 10)
    before = c.copy()
    check(a, b, c, precision=precision, alpha=alpha, beta=beta)
    np.testing.assert_array_equal(c, before)


@pytest.mark.parametrize(("scalar", "verdict"), [(1e-46, "unproven"), (1e-40j, "verified")])
def test_scalars_below_the_range_of_fp32(scalar, verdict):
    rng = np.random.default_rng(20)
    a, b, c = normal(rng, 9, 12), normal(rng, 12, 10) * np.float32(1e8), normal(rng, 9, 10)
    check(a, b, c, precision="fp32", alpha=scalar, beta=scalar, verdict=verdict)


@pytest.mark.parametrize("precision", [*PRECISIONS, "7xint8", "16xint8"])
def test_beta_zero_does_not_read_c_and_alpha_zero_neither_a_nor_b(precision):
    nan = np.full((3, 3), np.nan, np.complex64)
    eye = np.eye(3, dtype=np.complex64)
    np.testing.assert_array_equal(gemm(eye, eye, nan, beta=0, precision=precision), eye)
    found = gemm(nan, nan, eye, alpha=0, beta=2, precision=precision)
    np.testing.assert_array_equal(found, 2 * eye)
    np.testing.assert_array_equal(gemm(nan, nan, alpha=0, precision=precision), 0)


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xtf32", "3xfp16", "fp16"])
@pytest.mark.parametrize("alias", ["a", "b", "c", "all"])
def test_out_may_be_an_input(precision, alias):
    rng = np.random.default_rng(9)
    dtype = PRECISIONS[precision].output
    a, b, c = (normal(rng, 8, 8, dtype=dtype) for _ in range(3))
    if alias == "all":
        b = c = a
    expected = gemm(a, b, c, alpha=1j, beta=2, precision=precision)
    out = {"a": a, "b": b, "c": c, "all": a}[alias]
    got = gemm(a, b, c, alpha=1j, beta=2, precision=precision, out=out)
    assert got is out
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_out_may_be_strided(precision):
    rng = np.random.default_rng(11)
    a, b = normal(rng, 5, 7), normal(rng, 7, 6)
    store = np.zeros((10, 12), PRECISIONS[precision].output)
    got = gemm(a, b, precision=precision, out=store[::2, ::2])
    np.testing.assert_array_equal(got, store[::2, ::2])
    check(a, b, precision=precision, out=store[1::2, 1::2])
    assert not store[::2, 1::2].any()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_other_input_types(precision):
    rng = np.random.default_rng(18)
    a = rng.integers(-100, 100, (5, 6))
    b = rng.standard_normal((6, 4)).astype(np.float32)
    check(a, b, precision=precision)
    check(a.tolist(), normal(rng, 6, 4, dtype=complex), precision=precision)


def test_integers_are_exact_where_the_format_holds_them():
    rng = np.random.default_rng(19)
    re, im = rng.integers(-120, 120, (2, 9, 30))
    a = re + 1j * im
    b = a.T.conj()
    for name, row in PRECISIONS.items():
        if row.operand.significand >= 7:
            np.testing.assert_array_equal(gemm(a, b, precision=name), a @ b)


@pytest.mark.parametrize(
    ("kw", "message"),
    [
        ({"op_a": "H"}, r"op_a must be one of \['N', 'T', 'C'\], got 'H'"),
        ({"precision": "fp7"}, "precision must be one of"),
        ({"beta": 1}, "so c must be given"),
        ({"beta": 1, "c": np.zeros((3, 3))}, "c must have shape"),
        ({"out": np.zeros((2, 4), np.float64)}, "out must have shape"),
        ({"op_b": "T"}, "inner dimensions differ"),
    ],
)
def test_mistakes(kw, message):
    with pytest.raises(ValueError, match=message):
        gemm(np.zeros((2, 3)), np.zeros((3, 4)), **kw)


def test_leading_axes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="do not broadcast"):
        gemm(np.zeros((2, 2, 3)), np.zeros((3, 3, 4)))
    with pytest.raises(ValueError, match="at least 2 axes"):
        gemm(np.zeros(3), np.zeros((3, 4)))


sizes = st.integers(1, 12)


@given(
    m=sizes, n=sizes, k=sizes, batch=st.integers(1, 3), precision=st.sampled_from(list(PRECISIONS)),
    op_a=st.sampled_from(OPS), op_b=st.sampled_from(OPS), seed=st.integers(0, 10**6),
    alpha=st.complex_numbers(max_magnitude=10), beta=st.complex_numbers(max_magnitude=10),
    exponents=st.tuples(st.integers(-12, 12), st.integers(-12, 12)),
)  # fmt: skip
@settings(max_examples=examples(150), deadline=None)
def test_any_call_is_within_its_bound(
    m, n, k, batch, precision, op_a, op_b, seed, alpha, beta, exponents
):
    rng = np.random.default_rng(seed)
    a = normal(rng, batch, *((m, k) if op_a == "N" else (k, m))) * np.float32(10.0 ** exponents[0])
    b = normal(rng, *((k, n) if op_b == "N" else (n, k))) * np.float32(10.0 ** exponents[1])
    c = normal(rng, batch, m, n)
    how = {"op_a": op_a, "op_b": op_b, "alpha": alpha, "beta": beta}
    # Scalars of 1e-252 leave nothing of fp32's numbers, and sums may cancel.
    check(a, b, c, precision=precision, verdict=("verified", "unproven"), **how)


@pytest.mark.parametrize("precision", SPLIT)
def test_sums_of_a_long_k_begin_anew(precision):
    """Whole sums of so long a k would be off by more: those between spills are not."""
    rng = np.random.default_rng(3)
    row, k = PRECISIONS[precision], 16384
    a, b = normal(rng, 48, k).astype(np.complex64), normal(rng, k, 48).astype(np.complex64)

    def error(found):
        return np.linalg.norm(found - exact) / np.linalg.norm(exact)

    large, right = (terms_of(x, "N", row, side) for x, side in ((a, "a"), (b, "b")))
    whole = np.empty((48, 48), np.complex64)
    factors = list(_factors(large, right, row))
    assert [left.shape[-1] for left, _ in factors] == [k, k] + 16 * [1024]
    whole[...] = sum(x @ y for x, y in [*factors[:2], (large.values[0], right.values[0])])
    exact = sum(x.astype(complex) @ y for x, y in factors)  # of the operands as they are held
    if large.exponents is not None:
        _descale(whole, large.exponents, right.exponents)
        exact = np.ldexp(exact.view(float), -(large.exponents + right.exponents).repeat(2, axis=-1))
        exact = exact.view(complex)
    assert error(gemm(a, b, precision=precision)) < error(whole)
