"""Constellations, whose bits come back, and counts of errors of bits, exact to add up."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_shards import Pipeline

from tests.workflow.chained_cases import study_of
from workflow import qam
from workflow.error_counts import EVM, RATE, counts_text, rates_of, summed_counts
from workflow.storage.products import read_product


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


def test_powers_add_up() -> None:
    one, other = counts_text([5.0], [0.25], [8.0]), counts_text([5.0], [1.5e-3], [4.0])
    np.testing.assert_array_equal(rates_of(summed_counts([one, other]))[1], [0.2515 / 12])
    assert rates_of(counts_text([5.0], [0.05], [0.2]))[1] == [0.25]  # of one symbol


def test_counts_add_up() -> None:
    one, other = (
        counts_text([-2.5, 1e-3], wrong, totals)
        for wrong, totals in (([3, 0], [8, 8]), ([1, 2], [4, 4]))
    )
    places, rates = rates_of(summed_counts([one, other]))
    np.testing.assert_array_equal(places, [-2.5, 1e-3])
    np.testing.assert_array_equal(rates, [4 / 12, 2 / 12])
    assert rates_of("")[1].size == 0
    for wrong in ("1.0", "1.0:2", "a:1/2", "1.0:1/b"):
        with pytest.raises(ValueError, match=r"invalid|could not"):
            rates_of(wrong)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        summed_counts([one, counts_text([-2.5], [1], [4])])


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
def test_a_product_has_the_curve_of_each_precision(tmp_path: Path, count: int) -> None:
    """Those of shards are counted together: the rate is that of the symbols of the whole."""
    case = {
        "kind": "mimo", "receivers": 8, "transmitters": 6, "subcarriers": 6, "symbols": 50,
        "qam": 64, "snr_db": [0.0, 10.0, 40.0], "shards": count, "precisions": ["fp64", "fp32"],
    }  # fmt: skip
    workload = study_of({"m": case}).workload("m")
    pipeline = Pipeline(tmp_path, workload, [])
    if count > 1:
        pipeline.sharded(count)
    else:
        pipeline.whole()
    product = read_product(pipeline.product)
    rates = {
        name.removeprefix(RATE): one for name, one in product.coordinates.items()
        if name.startswith(RATE)
    }  # fmt: skip
    assert set(rates) == {"fp64", "fp32"}
    assert all(one.of("") == ("snr",) for one in rates.values())
    sent = product.coordinates["sent"].values
    wrong = [qam.bit_errors(sent, qam.hard_bits(x, 64)).sum() for x in product.data]
    np.testing.assert_array_equal(rates["fp64"].values, np.array(wrong) / (6 * sent.size))
    assert rates["fp64"].values[0] > rates["fp64"].values[-1]
    symbols = qam.modulated(sent, 64)
    off = np.square(np.abs(product.data - symbols)).mean(axis=(1, 2, 3, 4))
    evm = 10 * np.log10(off / np.square(np.abs(symbols)).mean())
    for name in rates:  # the precisions are apart by less than noise is
        one = product.coordinates[EVM + name]
        np.testing.assert_allclose(one.values, evm, rtol=1e-4)
        assert (one.units, one.of("")) == ("dB", ("snr",))
    axes = Figure().subplots()
    workload.picture(product, axes)
    labels = [line.get_label() for line in axes.get_lines()]
    assert [f"EVM, {name}" in labels for name in rates] == [True] * len(rates)
    assert [f"bit error rate, {name}" in labels for name in rates] == [True] * len(rates)
