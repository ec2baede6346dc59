"""Counts of errors as text: exact to add up, and what the rates of equalised bits are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from test_shards import Pipeline

from tests.workflow.chained_cases import study_of
from workflow import qam
from workflow.error_counts import EVM, RATE, counts_text, rates_of, summed_counts
from workflow.storage.products import read_product


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
