"""Equalisers as a workload: symbols that come back, errors as theory has them, files, mistakes."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import cpu
from matplotlib.figure import Figure
from scipy.special import erfc

from tests.workflow.workloads.on_cpu import computed
from workflow import qam
from workflow.accuracy.assessment import worst_of
from workflow.files.input_error import InputError
from workflow.steps.pieces import pieces_of, sizes
from workflow.workloads.mimo import AXES, Mimo, MimoCase

DRAWN = {"receivers": 8, "transmitters": 3, "subcarriers": 16, "symbols": 40}


def mimo(**parameters):
    return Mimo("m", MimoCase.model_validate({"kind": "mimo", **parameters}), 11)


def assessed(one, staged, result, precision="fp64"):
    return one.assess(staged, one.reference(staged), result, PRECISIONS[precision], "cpu")


@pytest.mark.parametrize("equaliser", ["zf", "lmmse"])
@pytest.mark.parametrize("order", qam.ORDERS)
def test_symbols_come_back_without_noise(equaliser, order):
    one = mimo(**DRAWN, qam=order, equaliser=equaliser, snr_db=[90.0])
    staged, result = computed(one, "fp32")
    product = one.product(staged, result)
    sent = product.coordinates["sent"].values
    np.testing.assert_array_equal(qam.hard_bits(product.data[0], order), sent)
    found = assessed(one, staged, result, "fp32")
    assert found.verified, found.reason
    assert found.measures["bit_error_rate"] == found.measures["bits_changed"] == 0
    assert found.measures["evm_db"] < -60
    assert found.measures["information_bits"] > qam.bits_of(order) - 1e-3


def test_symbols_beyond_all_noise_carry_no_information():
    one = mimo(**DRAWN, qam=4, snr_db=[90.0])
    staged, result = computed(one, "fp32")
    result = result.astype(complex)
    result[0, 0, 0, 0, 0] = 1e160  # its square overflows
    found = assessed(one, staged, result)
    assert found.measures["evm_db"] > 3000
    assert "information_bits" not in found.measures


def test_soft_bits_are_the_product_where_asked_for():
    """Their signs are the nearest symbols, and they carry what the measure of symbols says."""
    one = mimo(**DRAWN, qam=16, snr_db=[8.0, 20.0], soft_bits=True)
    staged, result = computed(one, "fp32")
    found = assessed(one, staged, result, "fp32")
    assert found.verified, found.reason
    product = one.product(staged, result)
    assert product.axes == (*AXES, "bit")
    assert product.data.shape == (*result.shape, 4)
    sent = product.coordinates["sent"].values
    np.testing.assert_array_equal(qam.bits_decided(product.data), qam.hard_bits(result, 16))
    carried = qam.information(sent, product.data[-1], 16)
    assert carried == pytest.approx(found.measures["information_bits"], rel=1e-5)
    assert carried > qam.information(sent, product.data[0], 16)
    assert found.measures["snr_db"] == 20
    outlined = one.product_outline(one.outline())
    assert (outlined.data.shape, outlined.axes) == (product.data.shape, product.axes)
    one.picture(product, Figure().subplots())


@pytest.mark.parametrize("equaliser", ["zf", "lmmse"])
def test_subcarriers_without_a_channel_count_nowhere(tmp_path, equaliser):
    """Subcarriers at the edges of a band enter neither EVM, nor error rates, nor the noise."""
    h = np.random.default_rng(3).standard_normal((2, 12, 4, 2, 2)) @ [1, 1j]
    with h5py.File(tmp_path / "h.h5", "w") as file:
        file["all"] = h
        h[:, [0, 6, 11]] = 0
        file["h"], file["used"] = h, np.delete(h, [0, 6, 11], axis=1)

    def found(name, **more):
        keys = {"snr_db": [10.0, 25.0], "symbols": 30, "equaliser": equaliser, **more}
        return mimo(input={"file": tmp_path / "h.h5", "channel": name}, **keys)

    staged, result = computed(found("h"), "fp64")
    noise = [one.coordinates["noise_power"].values for one in (staged, found("used").stage())]
    np.testing.assert_array_equal(*noise)
    kept = np.delete(np.arange(12), [0, 6, 11])
    sent, x = staged.coordinates["sent"].values[:, kept], result[:, :, kept]
    measures = assessed(found("h"), staged, result).measures
    symbols = qam.modulated(sent, 16)
    off = np.linalg.norm(x[-1] - symbols) / np.linalg.norm(symbols)
    assert measures["evm_db"] == pytest.approx(20 * np.log10(off))
    wrong = [qam.bit_errors(sent, qam.hard_bits(one, 16)).sum() for one in x]
    total = 4 * sent.size
    assert measures["bit_errors"] == f"10.0:{wrong[0]}/{total} 25.0:{wrong[1]}/{total}"
    assert measures["bit_error_rate"] == wrong[1] / total
    soft = found("h", soft_bits=True).product(staged, result).data
    expected = qam.soft_bits(x, 16, qam.error_power(sent, x, 16))
    np.testing.assert_allclose(soft[:, :, kept], expected, rtol=2**-23)  # kept in fp32
    assert np.isnan(np.delete(soft, kept, axis=2)).all()  # least squares would be sure of bits
    carried = qam.information(sent, expected[-1], 16)
    assert measures["information_bits"] == pytest.approx(carried)
    # A shard of such subcarriers alone takes nothing from the measures of the whole.
    first = {name: one[..., :1, :, :] for name, one in staged.operands.items()}
    numbers = replace(staged.coordinates["sent"], values=staged.coordinates["sent"].values[:, :1])
    unused = replace(staged, operands=first, coordinates={**staged.coordinates, "sent": numbers})
    parts = (staged, result), (unused, result[:, :, :1])
    whole = worst_of({str(n): assessed(found("h"), *one) for n, one in enumerate(parts)})
    assert whole.measures == measures


def test_hard_bits_are_the_product_where_asked_for():
    """They are those of the nearest symbols, and NaN where there is no symbol, or no channel."""
    one = mimo(**DRAWN, qam=64, snr_db=[8.0, 20.0], hard_bits=True)
    staged, result = computed(one, "fp32")
    result = result.copy()
    result[1, 0, 0, 0, 0] = np.nan
    product = one.product(staged, result)
    assert (product.axes, product.data.dtype) == ((*AXES, "bit"), np.float32)
    assert np.isnan(product.data[1, 0, 0, 0, 0]).all()
    assert np.isnan(product.data).sum() == 6
    unused = result.copy()
    unused[:, :, -1] = 0  # what least squares give of a subcarrier at the edge of a band
    missing = np.isnan(one.product(staged, unused).data)
    assert missing[:, :, -1].all()
    assert missing[:, :, :-1].sum() == 6
    numbers = np.nan_to_num(product.data).astype(int) @ (1 << np.arange(6)[::-1])
    known = np.isfinite(result)
    np.testing.assert_array_equal(numbers[known], qam.hard_bits(result, 64)[known])
    outlined = one.product_outline(one.outline())
    assert (outlined.data.shape, outlined.axes) == (product.data.shape, product.axes)
    axes = Figure().subplots()
    one.picture(product, axes)
    rate = (qam.bit_errors(product.coordinates["sent"].values, numbers[0]).mean()) / 6
    np.testing.assert_allclose(axes.lines[0].get_ydata()[0], rate)


def test_soft_bits_are_of_the_whole():
    """A piece or a shard would have a noise of its own."""
    keys = {**DRAWN, "subcarriers": 256, "snr_db": [8.0]}
    for soft, axis in ((False, "frequency"), (True, None)):
        one = mimo(**keys, soft_bits=soft)
        assert pieces_of(one, one.outline(), most=1).axis == axis


def test_systems_count_toward_the_memory_of_jobs():
    """With one symbol of 128 transmitters they are a hundred times as large as what arrives."""
    one = mimo(receivers=128, transmitters=128, subcarriers=10, symbols=1, snr_db=[0.0, 10.0])
    found = sizes(one, one.outline())
    assert found.intermediate == 16 * 2 * 10 * 128**2
    assert found.volume == found.intermediate + found.result + sum(found.operands.values())


def test_bit_errors_of_one_antenna_are_those_of_theory():
    """4-QAM over one path: the rate is erfc(sqrt(SNR / 2)) / 2 for a channel of constant power."""
    one = mimo(receivers=1, transmitters=1, subcarriers=1, paths=1, symbols=1 << 16, qam=4,
               snr_db=[6.0], equaliser="zf")  # fmt: skip
    staged, result = computed(one)
    rate = assessed(one, staged, result).measures["bit_error_rate"]
    expected = erfc((10**0.6 / 2) ** 0.5) / 2
    # Six deviations of as many independent bits.
    assert abs(rate - expected) < 6 * (expected / (2 << 16)) ** 0.5


def test_least_squares_err_less_than_zero_forcing_at_low_ratios():
    errors = {}
    for equaliser in ("zf", "lmmse"):
        one = mimo(**{**DRAWN, "receivers": 3}, equaliser=equaliser, snr_db=[0.0])
        staged, result = computed(one)
        errors[equaliser] = assessed(one, staged, result).measures["evm_db"]
    assert errors["lmmse"] < errors["zf"] - 3


def test_the_system_is_that_of_numpy():
    one = mimo(**DRAWN, snr_db=[3.0, 20.0])
    staged, result = computed(one)
    h, y = (staged.operands[name].astype(complex) for name in ("channel", "received"))
    for index, load in enumerate(staged.coordinates["noise_power"].values):
        adjoint = h.conj().swapaxes(-1, -2)
        x = np.linalg.solve(adjoint @ h + load * np.eye(3), adjoint @ y[index])
        np.testing.assert_allclose(result[index], x, rtol=1e-10)
    power = np.square(np.abs(h)).sum(axis=-1).mean()
    np.testing.assert_allclose(staged.coordinates["noise_power"].values[0], power * 10**-0.3)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize(("load", "sign", "most"), [(2.0**20, 1, 2**0.5), (0.0, -1, 8**0.5)])
def test_the_bound_is_near_the_largest_error(precision, load, sign, most):
    """The numbers of one antenna are halfway between two of the precision, v from either.

    With much noise the error is that of b alone, 2 v, and the bound sqrt(2) of it, for errors of
    both parts. Without noise channels err in G and in b, of which the bound is 4 sqrt(2) v; the
    error is 2 v at most, where the received values err the other way.
    """
    one = mimo(receivers=1, transmitters=1, subcarriers=1, symbols=1, paths=1, snr_db=[0.0])
    staged, row = one.stage(), PRECISIONS[precision]
    halfway = [np.full((1, 1, 1, 1), 1 + row.u + up * 2.0**-20, np.complex64) for up in (1, sign)]
    noise = replace(staged.coordinates["noise_power"], values=np.array([load]))
    staged = replace(
        staged, operands={"channel": halfway[0], "received": halfway[1][None]},
        coordinates={**staged.coordinates, "noise_power": noise},
    )  # fmt: skip
    ours = one.argand(staged, row, cpu())
    found = one.assess(
        staged, one.reference(staged), ours.compute(ours.prepare(staged.operands)), row, "cpu"
    )
    assert found.verified, found.reason
    # Roundings of fp32 are below 2^-20 of each number, and those of v squared below v.
    assert 1 <= found.ratio <= most * (1 + 4 * row.u + 2.0**-18 / row.u)


def test_a_channel_of_rank_one_has_no_zero_forcing(tmp_path):
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["h"] = np.ones((2, 4, 4, 2)) * (1 + 0j)
        file["wide"] = np.ones((2, 4, 2, 3)) * (1 + 0j)
    given = {"file": tmp_path / "own.h5", "channel": "h"}
    one = mimo(input=given, equaliser="zf", symbols=3)
    one.check()
    staged, result = computed(one, "fp32")
    assert "singular in fp64" in assessed(one, staged, result, "fp32").reason
    loaded = mimo(input=given, symbols=3, snr_db=[0.0, 10.0])
    staged, result = computed(loaded, "fp32")
    assert assessed(loaded, staged, result, "fp32").verified
    with pytest.raises(
        InputError, match=r"got 2 receivers and 3 transmitters; it is read as \(time, frequency,"
    ):
        mimo(input={**given, "channel": "wide"}).check()


@pytest.mark.parametrize("equaliser", ["zf", "lmmse"])
def test_measured_wireless_channels(real_data, equaliser):
    """The channels of ``examples/wifi.yaml``, whose symbols err as the gallery says."""
    given = {"file": real_data / "csi" / "iwl5300_sample_0x1_ap.dat", "format": "csi",
             "channel": "channel", "select": {"channel": {"time": "0:20"}}}  # fmt: skip
    one = mimo(input=given, symbols=20, snr_db=[0.0, 30.0], qam=16, equaliser=equaliser)
    staged, result = computed(one, "fp32")
    assert staged.operands["channel"].shape == (20, 30, 3, 2)
    found = assessed(one, staged, result, "fp32")
    assert found.verified, found.reason
    assert found.measures["bit_error_rate"] < 1e-3
    assert found.measures["evm_db"] == pytest.approx(-20.4, abs=1)
    assert "frequency" in one.product(staged, result).coordinates


def test_a_channel_is_read_by_the_words_of_wireless_files(tmp_path, rng):
    """A channel (rx, user, sc) was read as (frequency, receiver, transmitter) without a word."""
    h = (rng.standard_normal((8, 3, 2, 2)) @ [1, 1j]).astype(np.complex64)
    names = {"h": ("Rx", "tx", "subcarrier"), "users": ("rx", "user", "sc")}
    with h5py.File(tmp_path / "h.h5", "w") as file:
        for name, labels in names.items():
            file[name] = h
            for axis, label in zip(file[name].dims, labels, strict=True):
                axis.label = label
    one = mimo(input={"file": tmp_path / "h.h5", "channel": "h"}, symbols=2)
    found = one.stage().operands["channel"]
    np.testing.assert_array_equal(found, h.transpose(2, 0, 1)[None])
    one = mimo(input={"file": tmp_path / "h.h5", "channel": "users"}, symbols=2)
    with pytest.raises(InputError, match=r"names its axes \['receiver', 'user', 'sc'\].*name its"):
        one.check()
