"""Spectra: references, bounds and verdicts of transforms."""

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from scipy import fft

from tests.normal import normal
from tests.verdicts import is_right
from tests.workflow.peak_memory import with_peak
from workflow.accuracy.references import spectrum_reference
from workflow.accuracy.transform_accuracy import assess_spectrum

NAMES = list(PRECISIONS)


def staged_transform(x, factors, precision):
    """A transform by dense stages at a precision, as the dft workload does it: decimate in time."""
    if len(factors) == 1:
        return gemm(x, fourier(factors[0]), precision=precision)
    first, rest = factors[0], int(np.prod(factors[1:]))
    inner = staged_transform(
        np.ascontiguousarray(np.swapaxes(x.reshape(*x.shape[:-1], rest, first), -1, -2)),
        factors[1:],
        precision,
    )
    twiddle = fourier(first * rest)[:first, :rest]
    inner = inner * twiddle.astype(inner.dtype)
    outer = gemm(fourier(first), inner, precision=precision)
    return outer.reshape(*x.shape[:-1], first * rest)


def fourier(n):
    """Whole turns are taken off first, or an angle's rounding would be most of fp64's error."""
    return np.exp(-2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)


class TestSpectra:
    @pytest.mark.each_value
    @pytest.mark.parametrize("precision", NAMES)
    @pytest.mark.parametrize("factors", [(7,), (97,), (8, 5), (40, 25), (3, 4, 5)])
    def test_dense_stages_are_within_the_bound(self, precision, factors):
        rng = np.random.default_rng(9)
        x = normal(rng, 3, 2, int(np.prod(factors)))
        result = staged_transform(x, factors, precision)
        accuracy = assess_spectrum(
            spectrum_reference(x), result, PRECISIONS[precision], factors=factors, backend="cpu"
        )
        assert is_right(accuracy, precision), accuracy.reason
        assert 0 < accuracy.rel_frobenius <= accuracy.max_row_error <= accuracy.bound
        lower = {
            "fp64": "fp32", "fp32": "tf32", "3xtf32": "fp16", "3xfp16": "fp16",
        }.get(precision)  # fmt: skip
        if lower and len(factors) > 1:
            coarse = staged_transform(x, factors, lower)
            assert not assess_spectrum(
                spectrum_reference(x), coarse, PRECISIONS[precision], factors=factors, backend="cpu"
            ).verified
        assert accuracy.reference_rows == 6

    @pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
    @pytest.mark.parametrize("inverse", [False, True])
    def test_the_reference_is_scipys(self, norm, inverse):
        x = normal(np.random.default_rng(10), 2, 3, 30)
        found = spectrum_reference(x, inverse=inverse, norm=norm)
        transform = fft.ifft if inverse else fft.fft
        np.testing.assert_allclose(found.values, transform(x.astype(complex), norm=norm))
        assert (np.abs(found.values).max(axis=-1) <= found.magnitude * (1 + 1e-12)).all()

    def test_a_wrong_element_a_wrong_row_and_zero_rows(self):
        x = normal(np.random.default_rng(11), 50, 64)
        x[7] = 0
        reference, row = spectrum_reference(x), PRECISIONS["fp32"]

        def verified(result):
            return assess_spectrum(reference, result, row, factors=(8, 8), backend="cpu").verified

        exact = reference.values.astype(np.complex64)
        assert verified(exact)
        for place, value in (((3, 9), 1e-2), ((7, 0), 1e-40), ((4, 4), np.nan)):
            wrong = exact.copy()
            wrong[place] += np.complex64(value)
            assert not verified(wrong)
        assert not verified(exact[::-1])
        assert not verified(exact.conj())

    def test_non_finite_rows(self):
        x = normal(np.random.default_rng(12), 4, 16)
        x[2, 3] = np.nan
        reference = spectrum_reference(x)
        result = reference.values.astype(np.complex64)
        arguments = {"factors": (16,), "backend": "cpu"}
        assert assess_spectrum(reference, result, PRECISIONS["fp32"], **arguments).verified
        result[2] = 0
        assert not assess_spectrum(reference, result, PRECISIONS["fp32"], **arguments).verified

    @pytest.mark.parametrize("place", [0, 65_536, 150_000, -1])
    @pytest.mark.parametrize("value", [1.0, np.nan])
    def test_rows_longer_than_what_is_compared_at_a_time(self, place, value):
        x = normal(np.random.default_rng(13), 2, 150_001)
        reference = spectrum_reference(x)
        np.testing.assert_allclose(reference.magnitude, np.abs(x.astype(complex)).sum(axis=-1))
        result = reference.values.astype(np.complex64)
        row, arguments = PRECISIONS["fp32"], {"factors": (150_001,), "backend": "cpu"}
        right = assess_spectrum(reference, result, row, **arguments)
        lost = np.linalg.norm(result - reference.values)
        np.testing.assert_allclose(right.error_limit, lost / np.linalg.norm(reference.values))
        assert right.verified
        result[1, place] += np.complex64(value * 1e4)
        assert not assess_spectrum(reference, result, row, **arguments).verified

    def test_a_long_row_is_compared_in_little_memory(self):
        x = np.ones((1, 1 << 20), complex)
        reference = spectrum_reference(x)
        result = reference.values.astype(np.complex64)
        arguments = {"factors": (1 << 20,), "backend": "cpu"}
        accuracy, peak = with_peak(
            lambda: assess_spectrum(reference, result, PRECISIONS["fp32"], **arguments)
        )
        assert accuracy.verified
        assert peak < result.nbytes

    def test_mistakes(self):
        x = np.zeros((2, 12))
        with pytest.raises(ValueError, match=r"factors must have the product 12, got \[3, 5\]"):
            assess_spectrum(
                spectrum_reference(x), x, PRECISIONS["fp32"], factors=(3, 5), backend="cpu"
            )
        with pytest.raises(ValueError, match="norm must be one of"):
            spectrum_reference(x, norm="none")
