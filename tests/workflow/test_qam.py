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


@pytest.mark.parametrize(
    ("order", "codes"), [(4, "0 1"), (16, "00 01 11 10"), (64, "000 001 011 010 110 111 101 100")]
)
def test_bits_are_mapped_as_in_802_11(order, codes):
    """IEEE 802.11's tables of input bits, which of 16 and 64 symbols have I from -3 and -7 on."""
    levels = np.arange(1 - order**0.5, order**0.5, 2) / {4: 2, 16: 10, 64: 42}[order] ** 0.5
    for real, first in zip(levels, codes.split(), strict=True):
        for imag, last in zip(levels, codes.split(), strict=True):
            found = qam.modulated(np.array(int(first + last, 2)), order)
            np.testing.assert_allclose(found, complex(real, imag))


def test_far_and_missing_symbols_are_some_symbol():
    found = qam.hard_bits(np.array([1e30, -1e30j, complex(np.nan, np.nan)]), 64)
    assert ((found >= 0) & (found < 64)).all()


@pytest.mark.parametrize("order", qam.ORDERS)
def test_soft_bits_have_the_signs_of_hard_bits(order, rng):
    numbers = rng.integers(0, order, 300)
    near = qam.modulated(numbers, order) + 0.05 * rng.standard_normal((300, 2)).view(complex)[:, 0]
    ratios = qam.soft_bits(near, order, 0.005)
    shifts = np.arange(qam.bits_of(order))[::-1]
    hard = (qam.hard_bits(near, order)[:, None] >> shifts) & 1
    np.testing.assert_array_equal(ratios < 0, hard == 1)
    np.testing.assert_allclose(qam.soft_bits(near, order, 0.01), ratios / 2)


def test_soft_bits_of_four_symbols_are_exact_and_carry_what_theory_has(rng):
    """In 4-QAM the ratio of a bit is 2 sqrt(2) x / noise, and its channel is a binary one."""
    numbers, noise = rng.integers(0, 4, 1 << 16), 0.5
    values = rng.standard_normal((1 << 16, 2)).view(complex)[:, 0] * (noise / 2) ** 0.5
    near = qam.modulated(numbers, 4) + values
    ratios = qam.soft_bits(near, 4, noise)
    expected = -2 * 2**0.5 / noise * np.stack([near.real, near.imag], axis=-1)
    np.testing.assert_allclose(ratios, expected, rtol=1e-9, atol=1e-9)
    # The capacity of a binary channel at a ratio of 1 / noise = 3 dB, by quadrature.
    x = np.linspace(-8, 8, 4001)
    density = np.exp(-(x**2) / 2) / (2 * np.pi) ** 0.5
    level = np.logaddexp(0, -(4 + 8**0.5 * x)) / np.log(2)
    capacity = 2 * (1 - np.trapezoid(density * level, x))
    assert abs(qam.information(numbers, ratios, 4) - capacity) < 0.02
