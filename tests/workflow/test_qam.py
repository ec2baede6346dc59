"""Constellations: their power, their Gray mapping, and bits that come back."""

import numpy as np
import pytest

from workflow import qam


@pytest.mark.parametrize("order", qam.ORDERS)
def test_symbols_of_unit_power_come_back(order):
    numbers = np.arange(order)
    symbols = qam.modulated(numbers, order)
    assert len(set(np.round(symbols, 9))) == order
    np.testing.assert_allclose(np.square(np.abs(symbols)).mean(), 1)
    np.testing.assert_array_equal(qam.hard_bits(symbols, order), numbers)
    step = np.diff(np.unique(symbols.real.round(9))).min()
    for shift in (0.49 * step, -0.49j * step):
        np.testing.assert_array_equal(qam.hard_bits(symbols + shift, order), numbers)
    assert 2 ** qam.bits_of(order) == order


@pytest.mark.parametrize("order", qam.ORDERS)
def test_neighbours_differ_in_one_bit(order):
    numbers = np.arange(order)
    symbols = qam.modulated(numbers, order)
    step = np.diff(np.unique(symbols.real.round(9))).min()
    apart = np.abs(symbols[:, None] - symbols)
    pairs = np.argwhere(np.abs(apart - step) < 1e-9)
    assert len(pairs) == 4 * int(order**0.5) * (int(order**0.5) - 1)
    assert (qam.bit_errors(pairs[:, 0], pairs[:, 1]) == 1).all()


def test_far_and_missing_symbols_are_some_symbol():
    found = qam.hard_bits(np.array([1e30, -1e30j, complex(np.nan, np.nan)]), 64)
    assert ((found >= 0) & (found < 64)).all()
