"""Transforms as a workload: lengths, tones, windows, files, bounds and mistakes."""

import h5py
import numpy as np
import pytest
import scipy.fft
from argand import PRECISIONS
from argand.device import Device, arch_for, cpu
from argand.dft import few_rows, tuned
from argand.dft.library_choice import LibraryKernels
from argand.dft.method import method_for, prime_factors
from argand.runtime.plans import tuned_plans
from input_files import put
from pydantic import ValidationError

from tests.verdicts import is_right
from tests.workflow.workloads.on_cpu import result_of
from workflow.accuracy.bounds import transform_bound
from workflow.accuracy.transform_bounds import dft_bound
from workflow.config.dft_case import DftCase
from workflow.files.input_error import InputError
from workflow.spectra.windows import NAMED, make_window
from workflow.workloads.dft import Dft

ONE_KERNEL = LibraryKernels(several=False, numbers=25, blocks=4)


def dft(**parameters):
    return Dft("d", DftCase.model_validate({"kind": "dft", **parameters}), 5)


def bound_of(precision, length):
    row = PRECISIONS[precision]
    if row.exact_operands:
        return transform_bound(row, prime_factors(length), "cpu")
    return dft_bound(row, method_for(length), "cpu")


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("length", [1, 2, 13, 97, 130, 521, 563, 1000])
@pytest.mark.parametrize("inverse", [False, True])
def test_every_length_verifies_at_every_precision(length, precision, inverse):
    one = dft(length=length, batch=3, inverse=inverse, norm="ortho", noise=1)
    staged = one.stage()
    found = result_of(one, staged, precision)
    accuracy = one.assess(staged, one.reference(staged), found, PRECISIONS[precision], "cpu")
    assert is_right(accuracy, precision), accuracy.reason


@pytest.mark.each_value
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_inverse_brings_the_samples_back(tmp_path, norm, precision):
    one = dft(length=120, batch=4, norm=norm, noise=1)
    staged = one.stage()
    spectra = result_of(one, staged, precision)
    put(tmp_path / "s.h5", x=spectra)
    source = {"file": tmp_path / "s.h5", "samples": "x"}
    back = dft(input=source, norm=norm, inverse=True, axis=-1)
    again = result_of(back, back.stage(), precision)
    samples = staged.operands["samples"]
    bound = bound_of(precision, 120)
    assert np.linalg.norm(again - samples) <= (2 * bound + bound**2) * np.linalg.norm(samples)


@pytest.mark.parametrize("window", ["blackmanharris", ["kaiser", 8.6], None])
def test_windowed_spectrum_is_scipys(window):
    from scipy.signal import get_window  # here: it takes as long to import as all that is above

    one = dft(length=250, batch=2, window=window, norm="forward")
    staged = one.stage()
    samples = staged.operands["samples"].astype(complex)
    given = "boxcar" if window is None else tuple(window) if isinstance(window, list) else window
    exact = scipy.fft.fft(samples * get_window(given, 250), norm="forward")
    found = result_of(one, staged, "fp64")
    bound = bound_of("fp64", 250)
    assert np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)
    assert ("window" in staged.operands) == (window is not None)


def test_tones_are_where_they_should_be():
    tones = [{"frequency": 0.25, "amplitude": 2}, {"frequency": -0.1, "amplitude": 0.5}]
    one = dft(length=200, batch=3, tones=tones, noise=0, norm="forward")
    staged = one.stage()
    product = one.product(staged, result_of(one, staged, "fp32"))
    magnitude = np.abs(product.data)
    # Samples and spectrum are fp32: what is not a tone is below the error of samples and transform.
    allowed = (bound_of("fp32", 200) + 2.0**-21) * 2.5
    assert np.abs(magnitude[:, [50, 180]] - [2, 0.5]).max() <= allowed
    assert np.delete(magnitude, [50, 180], axis=1).max() <= allowed
    frequency = product.coordinates["frequency"]
    assert frequency.values[50] == 0.25
    assert frequency.units == "cycles/sample"
    assert product.axes == ("batch", "frequency")


def test_an_inverse_has_samples_as_its_axis():
    one = dft(length=12, batch=3, inverse=True)
    staged = one.stage()
    assert one.product(staged, result_of(one, staged, "fp32")).axes == ("batch", "sample")


def test_algorithm_names_the_factors(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    one = dft(length=1000)
    implementation = one.argand(one.stage(), PRECISIONS["tf32"], cpu())
    assert implementation.algorithm == "40 x 25"
    assert one.argand(one.stage(), PRECISIONS["fp64"], cpu()).algorithm == "pocketfft"
    hopper = Device("cuda", "H200", arch=arch_for(90))
    monkeypatch.setattr(tuned_plans, "gpu", lambda index: hopper)
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", 0)  # as if there were many rows
    monkeypatch.setattr(tuned, "library_kernels", lambda *_: ONE_KERNEL)
    for precision, length, found in (
        ("3xfp16", 1024, "cufft: faster"), ("3xfp16", 97, "dense: 97"),
        ("3xfp16", 1000, "mixed_radix: 10 x 10 x 10 in fp32"),
        ("fp32", 97, "cufft: no kernel of ours: fp32"),
        ("3xfp16", 1009, "butterfly: rader(7 x 9 x 16) in fp32"),
    ):  # fmt: skip
        one = dft(length=length)
        named = one.argand(one.stage(), PRECISIONS[precision], hopper).algorithm
        assert named.startswith(found), named


def test_what_ran_on_a_gpu_decides_the_bound(tmp_path, monkeypatch):
    """tf32 where cuFFT runs in fp32 is held to fp32's bound; its own products to theirs."""
    monkeypatch.setenv("ARGAND_CACHE", str(tmp_path))
    hopper = Device("cuda", "H200", arch=arch_for(90))
    monkeypatch.setattr(tuned_plans, "gpu", lambda index: hopper)
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", 0)  # as if there were many rows
    monkeypatch.setattr(tuned, "library_kernels", lambda *_: ONE_KERNEL)
    row = PRECISIONS["tf32"]
    for length, fits in ((1000, False), (1009, False), (14_009, False), (97, True)):
        one = dft(length=length, batch=2)
        staged = one.stage()
        computed = one.as_computed(staged, one.argand(staged, row, hopper).plan_words)
        reference = one.reference(staged)
        found = (reference.values * (1 + 1e-4)).astype(np.complex64)
        accuracy = one.assess(computed, reference, found, row, "cuda")
        assert accuracy.verified == fits, (length, accuracy.bound)
        exact = reference.values.astype(np.complex64)
        assert one.assess(computed, reference, exact, row, "cuda").verified
    assert one.as_computed(staged, "") is staged


def test_operations_are_those_of_fast_transforms():
    one = dft(length=1024, batch=10)
    shape = one.shape(one.stage(), PRECISIONS["fp32"])
    assert shape.flops == 10 * 5 * 1024 * 10
    assert shape.bytes_moved == 10 * 1024 * 16
    assert (shape.batch, shape.n, shape.k) == (10, 1024, None)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("round", "must be a window of scipy.signal, got 'round'"),
        ("kaiser", "must be a window of scipy.signal, got 'kaiser'"),
        (["kaiser", "8"], "parameters must be numbers"), ("hanning", "did you mean 'hann'?"),
    ],
)  # fmt: skip
def test_windows_that_there_are_not_are_named(window, message):
    with pytest.raises(ValueError, match=message):
        dft(length=8, window=window).check()


@pytest.mark.parametrize("name", sorted(NAMED))
def test_windows_whose_names_are_known_to_be_right(name):
    assert np.isfinite(make_window(name, 8)).all()


def test_window_of_a_file_must_fit(tmp_path):
    put(tmp_path / "w.h5", x=np.ones((3, 10), complex), good=np.hanning(10), bad=np.hanning(11))
    source = {"file": tmp_path / "w.h5", "samples": "x"}
    one = dft(input=source | {"window": "good"}, axis=-1)
    one.check()
    staged = one.stage()
    bound = bound_of("fp64", 10)
    exact = np.tile(scipy.fft.fft(np.hanning(10)), (3, 1))
    found = result_of(one, staged, "fp64")
    assert np.linalg.norm(found - exact) <= bound * np.linalg.norm(exact)
    with pytest.raises(InputError, match=r"input\.window must have 10 values, .* got 11"):
        dft(input=source | {"window": "bad"}, axis=-1).check()
    with pytest.raises(ValidationError, match=r"window must not be given beside input\.window"):
        dft(input=source | {"window": "good"}, window="hann")


def test_hera_delay_transform(real_data):
    """Blackman-Harris times visibilities along frequency, 64 points, against scipy.fft."""
    from scipy.signal import get_window

    path = real_data / "vis" / "hera_zen.2458098.45361.uvh5"
    chosen = [":", 0, ":", 0]
    source = {"file": path, "samples": "Data/visdata", "select": {"samples": chosen}}
    one = dft(input=source, window="blackmanharris", axis=-2)
    one.check()
    staged = one.stage()
    with h5py.File(path) as file:
        visibility = file["Data/visdata"][:, 0, :, 0].astype(complex)
    exact = scipy.fft.fft(visibility * get_window("blackmanharris", 64))
    assert staged.operands["samples"].shape == (360, 64)
    reference = one.reference(staged)
    for name, precision in PRECISIONS.items():
        found = result_of(one, staged, name)
        accuracy = one.assess(staged, reference, found, precision, "cpu")
        assert is_right(accuracy, name), (name, accuracy.reason)
        bound = bound_of(name, 64)
        error = np.linalg.norm(found - exact, axis=-1)
        assert np.all(error <= bound * np.linalg.norm(exact, axis=-1))
