import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from argand import PRECISIONS, gemm, softmax
from argand.rounding import split
from scipy import fft

from workflow.accuracy import (
    assess_product,
    assess_softmax,
    assess_spectrum,
    assess_state,
    bounds,
    product_reference,
    softmax_reference,
    spectrum_reference,
    state_reference,
)

NAMES = list(PRECISIONS)


def normal(rng, *shape, dtype=np.complex64):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def product(rng, *, precision="fp32", m=30, k=40, n=20, **kw):
    a, b = normal(rng, m, k), normal(rng, k, n)
    return product_reference(a, b, **kw), gemm(a, b, precision=precision)


class TestProducts:
    def test_the_reference_is_the_product(self):
        rng = np.random.default_rng(0)
        a, b, c = normal(rng, 3, 1, 5, 4), normal(rng, 2, 5, 6), normal(rng, 3, 2, 4, 6)
        found = product_reference(a, b, c, alpha=2j, beta=-1, op_a="C")
        expected = 2j * np.swapaxes(a, -1, -2).conj().astype(complex) @ b - c
        np.testing.assert_allclose(found.values.reshape(expected.shape), expected, rtol=1e-13)
        sizes = 2 * np.abs(np.swapaxes(a, -1, -2)).astype(float) @ np.abs(b) + np.abs(c)
        np.testing.assert_allclose(found.magnitude.reshape(sizes.shape), sizes, rtol=1e-6)
        assert not found.sampled

    def test_sampled_rows_are_those_of_the_full_reference(self):
        rng = np.random.default_rng(1)
        a, b = normal(rng, 5, 40, 8), normal(rng, 8, 9)
        full = product_reference(a, b)
        some = product_reference(a, b, flop_budget=8 * 8 * 9 * 30, seed=3)
        assert some.sampled
        assert 20 < len(some.rows) <= 30
        assert set(some.rows // 40) == set(range(5))
        np.testing.assert_allclose(some.values, full.values[some.rows], rtol=1e-13)
        accuracy = assess_product(some, gemm(a, b), PRECISIONS["fp32"], backend="cpu")
        assert accuracy.verified
        assert (accuracy.reference, accuracy.reference_rows) == ("sampled", len(some.rows))

    @pytest.mark.parametrize("precision", NAMES)
    @pytest.mark.parametrize("part", [1, 1j])
    def test_an_error_just_outside_the_bound_fails_in_its_own_part(self, precision, part):
        reference, result = product(np.random.default_rng(2), precision=precision)
        row = PRECISIONS[precision]
        before = assess_product(reference, result, row, backend="cpu")
        assert before.verified, before.reason
        assert max(before.componentwise_re, before.componentwise_im) <= before.bound
        wrong = reference.values.astype(row.output)
        wrong[4, 5] += part * before.bound * reference.magnitude[4, 5] * 1.02
        after = assess_product(reference, wrong, row, backend="cpu")
        assert not after.verified
        if precision != "fp64":
            name = "componentwise_re" if part == 1 else "componentwise_im"
            assert f"{name}: an error is" in after.reason
            assert "at (0, 4, 5)" in after.reason

    @pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
    def test_a_lower_precision_does_not_pass_for_a_higher_one(self, precision):
        reference, result = product(np.random.default_rng(3), precision=precision)
        for higher in ("fp64", "fp32", "3xtf32", "3xfp16"):
            assert not assess_product(reference, result, PRECISIONS[higher], backend="cpu").verified

    @pytest.mark.parametrize("precision", ["3xtf32", "3xfp16"])
    @pytest.mark.parametrize("kept", [((0, 0),), ((1, 0), (0, 0)), ((0, 1), (0, 0))])
    def test_a_split_that_leaves_out_a_product_fails(self, precision, kept):
        row = PRECISIONS[precision]
        reference, _ = product(np.random.default_rng(19))
        result = gemm(reference.a, reference.b, precision=replace(row, products=kept))
        for backend in ("cpu", "cuda"):
            assert not assess_product(reference, result, row, backend=backend).verified

    @pytest.mark.parametrize("precision", ["3xfp16", "fp16"])
    @pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e8])
    def test_without_scaling_the_bound_breaks(self, precision, scale):
        row, rng = PRECISIONS[precision], np.random.default_rng(20)
        a, b = normal(rng, 30, 40) * np.float32(scale), normal(rng, 40, 20)
        reference = product_reference(a, b)
        with np.errstate(invalid="ignore"):
            unscaled = gemm(a, b, precision=replace(row, scaled=False))
        assert not assess_product(reference, unscaled, row, backend="cpu").verified
        result = gemm(a, b, precision=row)
        assert assess_product(reference, result, row, backend="cpu").verified

    def test_terms_flushed_below_fp16s_normal_range_fail(self):
        """The bound grants half a subnormal spacing, not the smallest normal number."""
        row, rng = PRECISIONS["3xfp16"], np.random.default_rng(21)
        a = (2.0 ** rng.uniform(-20, 0, (20, 40, 2))).astype(np.float32).view(np.complex64)[..., 0]
        a[:, 0] = 1.5
        b = np.eye(40, dtype=np.complex64)
        reference = product_reference(a, b)
        result = gemm(a, b, precision=row)
        accuracy = assess_product(reference, result, row, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.lines_out_of_range == 20
        hi, lo = split(a * np.float32(2.0**14), row)
        parts = lo.view(np.float32)
        parts[np.abs(parts) < 2.0**-14] = 0
        flushed = (hi + lo) * np.float32(2.0**-14)
        assert not assess_product(reference, flushed, row, backend="cpu").verified

    @pytest.mark.parametrize("precision", NAMES)
    def test_lines_beyond_the_range_are_counted_and_verify(self, precision):
        row, rng = PRECISIONS[precision], np.random.default_rng(22)
        a, b = rng.uniform(1, 2, (30, 40)) + 0j, rng.uniform(1, 2, (40, 70)) + 0j
        a[3:5, 2], b[7, 60], b[8, 61] = 1e-12, 1e6j, np.inf
        with np.errstate(invalid="ignore"):
            reference, result = product_reference(a, b), gemm(a, b, precision=row)
        accuracy = assess_product(reference, result, row, backend="cpu")
        assert accuracy.verified, accuracy.reason
        expected = {"3xfp16": 3, "fp16": 2}.get(precision)
        assert accuracy.lines_out_of_range == expected
        if row.scaled:
            assert accuracy.largest_spread == pytest.approx(a[3].real.max() * 1e12)
        else:
            assert accuracy.largest_spread is None
        unread = assess_product(
            product_reference(a, b, np.ones((30, 70)), alpha=0, beta=1), np.ones((30, 70)), row,
            backend="cpu",
        )  # fmt: skip
        assert unread.verified
        assert unread.lines_out_of_range is None

    def test_swapped_conjugated_and_transposed_results_fail(self):
        rng = np.random.default_rng(4)
        reference, result = product(rng, m=20, n=20)
        for wrong in (result.conj(), result.T, -result, result[::-1], result * 1j, 0 * result):
            assert not assess_product(reference, wrong, PRECISIONS["bf16"], backend="cuda").verified

    def test_a_zero_denominator_demands_an_exact_zero(self):
        rng = np.random.default_rng(5)
        a, b = normal(rng, 6, 5), normal(rng, 5, 4)
        a[2] = 0
        reference, result = product_reference(a, b), gemm(a, b)
        assert assess_product(reference, result, PRECISIONS["fp32"], backend="cpu").verified
        result[2, 1] = 1e-45
        accuracy = assess_product(reference, result, PRECISIONS["fp32"], backend="cpu")
        assert not accuracy.verified
        assert accuracy.componentwise_re == np.inf

    def test_all_zero(self):
        zero = np.zeros((3, 3), np.complex64)
        accuracy = assess_product(
            product_reference(zero, zero), zero, PRECISIONS["tf32"], backend="cpu"
        )
        assert accuracy.verified
        assert accuracy.rel_frobenius == 0

    @pytest.mark.parametrize("where", ["a", "b", "c"])
    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_non_finite_values_belong_where_the_reference_has_them(self, where, value):
        rng = np.random.default_rng(6)
        a, b, c = normal(rng, 70, 9), normal(rng, 9, 80), normal(rng, 70, 80)
        {"a": a, "b": b, "c": c}[where][5, 6] = value
        reference = product_reference(a, b, c, beta=1)
        with np.errstate(invalid="ignore"):
            result = gemm(a, b, c, beta=1)
        fp32 = PRECISIONS["fp32"]
        accuracy = assess_product(reference, result, fp32, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.rel_frobenius < 1e-6
        made_finite = np.where(np.isfinite(result), result, 0)
        assert not assess_product(reference, made_finite, fp32, backend="cpu").verified
        elsewhere = result.copy()
        elsewhere[60, 70] = np.nan
        assert not assess_product(reference, elsewhere, fp32, backend="cpu").verified

    def test_alpha_zero_leaves_nan_operands_unread(self):
        nan, c = np.full((3, 3), np.nan, np.complex64), np.eye(3, dtype=np.complex64)
        reference = product_reference(nan, nan, c, alpha=0, beta=3j)
        result = gemm(nan, nan, c, alpha=0, beta=3j)
        assert assess_product(reference, result, PRECISIONS["fp32"], backend="cpu").verified

    def test_a_wrong_shape_is_an_error(self):
        reference, result = product(np.random.default_rng(7))
        with pytest.raises(ValueError, match=r"result must have shape \(30, 20\), got \(20, 30\)"):
            assess_product(reference, result.T, PRECISIONS["fp32"], backend="cpu")

    def test_the_verdict_fits_into_a_record(self):
        reference, result = product(np.random.default_rng(8))
        accuracy = assess_product(reference, result, PRECISIONS["fp32"], backend="cpu")
        assert json.loads(json.dumps(asdict(accuracy)))["verified"] is True


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
    twiddle = np.exp(-2j * np.pi * np.outer(np.arange(first), np.arange(rest)) / (first * rest))
    inner = inner * twiddle.astype(inner.dtype)
    outer = gemm(fourier(first), inner, precision=precision)
    return outer.reshape(*x.shape[:-1], first * rest)


def fourier(n):
    return np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)


class TestSpectra:
    @pytest.mark.parametrize("precision", NAMES)
    @pytest.mark.parametrize("factors", [(7,), (97,), (8, 5), (40, 25), (3, 4, 5)])
    def test_dense_stages_are_within_the_bound(self, precision, factors):
        rng = np.random.default_rng(9)
        x = normal(rng, 3, 2, int(np.prod(factors)))
        result = staged_transform(x, factors, precision)
        accuracy = assess_spectrum(
            spectrum_reference(x), result, PRECISIONS[precision], factors=factors, backend="cpu"
        )
        assert accuracy.verified, accuracy.reason
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

    def test_mistakes(self):
        x = np.zeros((2, 12))
        with pytest.raises(ValueError, match=r"factors must have the product 12, got \[3, 5\]"):
            assess_spectrum(
                spectrum_reference(x), x, PRECISIONS["fp32"], factors=(3, 5), backend="cpu"
            )
        with pytest.raises(ValueError, match="norm must be one of"):
            spectrum_reference(x, norm="none")


def evolve(state, gates, precision):
    for gate in gates:
        state = gemm(state.reshape(-1, len(gate)), gate, op_b="T", precision=precision)
        state = np.ascontiguousarray(state.T)
    return state.reshape(-1)


class TestStates:
    def gates(self, rng, width, count):
        """Random unitary gates, and widths; the state's axes turn by one gate at each."""
        return [
            np.linalg.qr(normal(rng, 2**width, 2**width, dtype=complex))[0] for _ in range(count)
        ]

    @pytest.mark.parametrize("precision", NAMES)
    def test_gates_are_within_the_bound(self, precision):
        rng = np.random.default_rng(13)
        state = normal(rng, 2**12, dtype=complex)
        state /= np.linalg.norm(state)
        gates = self.gates(rng, 3, 9)
        reference = state_reference(evolve(state, gates, "fp64"))
        row = PRECISIONS[precision]
        result = evolve(state.astype(row.output), gates, precision)
        accuracy = assess_state(reference, result, row, widths=[3] * 9, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.rel_frobenius <= accuracy.bound
        assert accuracy.fidelity == pytest.approx(1, abs=accuracy.bound**2 + 1e-9)
        assert accuracy.norm_drift <= accuracy.bound

    def test_wrong_states_fail_and_a_phase_is_wrong(self):
        rng = np.random.default_rng(14)
        state = normal(rng, 2**8, dtype=complex)
        state /= np.linalg.norm(state)
        reference = state_reference(state)

        def assessed(result):
            return assess_state(
                reference, result, PRECISIONS["fp32"], widths=[2] * 5, backend="cpu"
            )

        assert assessed(state.astype(np.complex64)).verified
        turned = assessed(state * 1j)
        assert not turned.verified
        assert turned.fidelity == pytest.approx(1)
        assert "norm_drift" in assessed(state * 1.001).reason
        assert "1 - fidelity" in assessed(np.roll(state, 1)).reason
        broken = state.copy()
        broken[3] = np.nan
        assert not assessed(broken).verified
        assert not assessed(0 * state).verified

    def test_a_rounded_state_is_no_reference(self):
        with pytest.raises(ValueError, match="dtype must be complex128, got complex64"):
            state_reference(np.ones(2, np.complex64))


class TestSoftmax:
    def test_an_error_just_outside_the_bound_fails(self):
        x = np.random.default_rng(15).normal(0, 3, (5, 100)).astype(np.float32)
        reference, row = softmax_reference(x), PRECISIONS["fp32"]
        result = softmax(x)
        accuracy = assess_softmax(reference, result, row, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.max_ulp < 20
        assert accuracy.row_sum_error < 1e-6
        wrong = reference.values.astype(np.float32)
        wrong[3, 50] *= 1 + 1.1 * accuracy.bound
        assert "row 3" in assess_softmax(reference, wrong, row, backend="cpu").reason

    def test_a_lower_precision_does_not_pass_for_fp32(self):
        x = np.random.default_rng(16).normal(0, 3, (5, 100)).astype(np.float32)
        reference = softmax_reference(x)
        for name in ("tf32", "fp16", "bf16"):
            result = softmax(x, precision=name)
            assert assess_softmax(reference, result, PRECISIONS[name], backend="cpu").verified
            assert not assess_softmax(reference, result, PRECISIONS["fp32"], backend="cpu").verified

    def test_rows_that_do_not_sum_to_one_fail_where_elements_could_pass(self):
        x = np.random.default_rng(17).normal(0, 30, (5, 100)).astype(np.float32)
        reference, row = softmax_reference(x), PRECISIONS["bf16"]
        result = softmax(x, precision="bf16") * np.float32(1.001)
        reason = assess_softmax(reference, result, row, backend="cpu").reason
        assert reason.startswith("row_sum_error 0.001 is")

    def test_nan_rows_and_zeros(self):
        x = np.zeros((3, 8), np.float32)
        x[0, 2], x[1, 3] = np.nan, -np.inf
        reference, row = softmax_reference(x), PRECISIONS["fp32"]
        result = softmax(x)
        assert assess_softmax(reference, result, row, backend="cpu").verified
        for place, value in (((0, 5), 0.1), ((1, 3), 1e-45), ((2, 2), np.nan)):
            wrong = result.copy()
            wrong[place] = value
            assert not assess_softmax(reference, wrong, row, backend="cpu").verified

    def test_the_whole_range_of_fp32(self):
        """Values from 1 down to the subnormal ones and to zero, with ulps counted there."""
        x = -np.linspace(0, 120, 4000, dtype=np.float32)[None]
        for name in ("fp64", "fp32"):
            accuracy = assess_softmax(
                softmax_reference(x), softmax(x, precision=name), PRECISIONS[name], backend="cpu"
            )
            assert accuracy.verified, accuracy.reason
            assert accuracy.max_ulp < 400


def test_a_bound_that_does_not_exist_is_not_passed(monkeypatch):
    monkeypatch.setattr(bounds, "product_bound", lambda *a, **k: float("inf"))
    reference, result = product(np.random.default_rng(18))
    assert (
        "no bound exists"
        in assess_product(reference, result, PRECISIONS["fp32"], backend="cpu").reason
    )
