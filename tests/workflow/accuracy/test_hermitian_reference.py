"""The reference of x x^H: that of a product of two matrices, by half the operations."""

from __future__ import annotations

import numpy as np
import pytest

from workflow.accuracy.correlation_accuracy import correlation_reference
from workflow.accuracy.hermitian_reference import hermitian_reference
from workflow.accuracy.references import product_reference


@pytest.mark.parametrize("shape", [(3, 2, 5, 7), (4, 1, 6), (2, 3, 0), (0, 3, 4)], ids=str)
@pytest.mark.parametrize("flop_budget", [1e9, 1])
def test_it_is_that_of_the_product(
    rng: np.random.Generator, shape: tuple[int, ...], flop_budget: float
) -> None:
    x = (rng.standard_normal((*shape, 2)) @ [1, 1j]).astype(np.complex64)
    found = hermitian_reference(x, seed=3, flop_budget=flop_budget)
    right = np.conj(np.swapaxes(x, -1, -2))
    expected = product_reference(x, right, seed=3, flop_budget=flop_budget)
    assert found.shape == expected.shape
    assert found.sampled == expected.sampled
    np.testing.assert_array_equal(found.rows, expected.rows)
    # Sums of 2 k products of fp64, in another order.
    np.testing.assert_array_less(
        np.abs(found.values - expected.values), 1e-14 * expected.magnitude + 1e-300
    )
    np.testing.assert_allclose(found.magnitude, expected.magnitude, rtol=1e-14)


def test_the_first_matrix_is_not_computed_again(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, 3, 4, 2)) @ [1, 1j]
    found = correlation_reference(x)
    assert found.first is not None
    assert np.shares_memory(found.first, found.product.values)
