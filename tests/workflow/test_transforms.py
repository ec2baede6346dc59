import numpy as np
import pytest
import scipy.fft
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow.methods.peers import numpy_product
from workflow.methods.transforms import (
    FACTOR_LIMIT,
    factors,
    is_prime,
    roots,
    scale,
    tables,
    transform,
)

LENGTHS = [1, 2, 3, 7, 12, 64, 65, 66, 97, 127, 130, 1000, 1009, 1024, 4096, 6000, 2 * 97 * 64]


@given(st.integers(1, 5000))
def test_factors_make_up_the_length_and_keep_the_limit(length):
    chosen = factors(length)
    assert np.prod(chosen) == length
    assert all(factor <= FACTOR_LIMIT or is_prime(factor) for factor in chosen)


@pytest.mark.parametrize(
    ("length", "chosen"),
    [(1, (1,)), (64, (64,)), (97, (97,)), (1000, (40, 25)), (1024, (32, 32)), (4096, (64, 64))],
)
def test_factors_are_few_and_balanced(length, chosen):
    assert factors(length) == chosen


def test_a_prime_is_one_dense_matrix():
    assert list(tables(factors(1009))) == ["factor0"]
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        factors(0)


def test_roots_keep_their_digits_at_large_angles():
    length = 2**20
    found = roots(2, length, length)[1]
    # The last root is the conjugate of the first to a rounding of the angle 2 pi / N and of exp.
    assert abs(found[-1] - found[1].conj()) <= 4 * 2.0**-52
    assert np.abs(np.abs(found) - 1).max() <= 2 * 2.0**-52


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("length", LENGTHS)
def test_transform_is_scipys(length, norm, inverse):
    rng = np.random.default_rng(length)
    x = rng.normal(size=(2, 3, length)) + 1j * rng.normal(size=(2, 3, length))
    chosen = factors(length)
    found = transform(
        x,
        tables(chosen, inverse=inverse),
        numpy_product,
        alpha=scale(length, norm, inverse=inverse),
    )
    library = scipy.fft.ifft if inverse else scipy.fft.fft
    exact = library(x, norm=norm)
    # A dense stage of k: 2 k + 4 roundings of |F| |x| <= sqrt(k) ||x||, doubled for both parts.
    bound = sum(2 * (2 * k + 4) * k**0.5 for k in chosen) * 2.0**-53
    assert found.shape == x.shape
    assert np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_transform_is_linear_and_inverted_by_the_inverse(length, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, length)) + 1j * rng.normal(size=(2, length))
    forward, back = tables(factors(length)), tables(factors(length), inverse=True)
    both = transform(2 * x + 1j * y, forward, numpy_product)
    apart = 2 * transform(x, forward, numpy_product) + 1j * transform(y, forward, numpy_product)
    bound = sum(2 * (2 * k + 4) * k**0.5 for k in factors(length)) * 2.0**-53
    size = length**0.5 * (2 * np.linalg.norm(x) + np.linalg.norm(y))
    assert np.linalg.norm(both - apart) <= 2 * bound * size
    again = transform(transform(x, forward, numpy_product), back, numpy_product, alpha=1 / length)
    assert np.linalg.norm(again - x) <= 3 * bound * np.linalg.norm(x)


def test_samples_are_not_changed():
    x = np.arange(130, dtype=complex).reshape(1, 130)
    transform(x, tables(factors(130)), numpy_product)
    assert np.array_equal(x[0], np.arange(130))
