"""Products: references, error measures and verdicts, against what is known to be right or wrong."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from argand import PRECISIONS, gemm
from argand.rounding import split

from tests.normal import normal
from tests.verdicts import is_right
from workflow.accuracy import bounds
from workflow.accuracy.freivalds import freivalds
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference

NAMES = list(PRECISIONS)


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
        bound = bounds.product_bound(row, reference.k, "cpu")
        assert max(before.componentwise_re, before.componentwise_im) <= bound
        wrong = reference.values.astype(row.output)
        wrong[4, 5] += part * bound * reference.magnitude[4, 5] * 1.02
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

    @pytest.mark.parametrize("k", [1, 22])
    def test_a_higher_precision_passes_for_tf32_and_its_errors_are_seen(self, k):
        reference, result = product(np.random.default_rng(7), m=18, k=k, n=2)
        tf32 = PRECISIONS["tf32"]
        assert assess_product(reference, result, tf32, backend="cuda").verified
        result[7, 1] *= 1 + 1e-3
        assert not assess_product(reference, result, tf32, backend="cuda").verified

    @pytest.mark.parametrize("precision", ["3xtf32", "3xfp16"])
    def test_a_split_is_held_to_its_own_bound_where_that_is_below_fp32s(self, precision):
        """At long k on a GPU, whose sums of splits are promoted."""
        reference, result = product(np.random.default_rng(8), precision=precision, k=4000)
        row = PRECISIONS[precision]
        assert assess_product(reference, result, row, backend="cuda").verified
        wrong = result * np.float32(1 + 3.2e-6)
        assert not assess_product(reference, wrong, row, backend="cuda").verified

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
        assert is_right(accuracy, precision), accuracy.reason
        expected = 2 + (np.log2(1e6) > row.full_range) if row.scaled else None
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

    @pytest.mark.parametrize("where", [(0, 0), (150, 7), (299, 299)])
    def test_the_error_is_that_of_all_blocks(self, where):
        """More elements than are compared at a time."""
        rng = np.random.default_rng(4)
        a, b = normal(rng, 300, 8), normal(rng, 8, 300)
        result, exact = gemm(a, b), a.astype(complex) @ b.astype(complex)
        result[where] += 100
        found = assess_product(product_reference(a, b), result, PRECISIONS["fp32"], backend="cpu")
        expected = np.linalg.norm(result - exact) / np.linalg.norm(exact)
        assert found.rel_frobenius == pytest.approx(expected, rel=1e-9)

    def test_what_must_not_be_finite_is_seen_in_every_block(self):
        rng, row = np.random.default_rng(5), PRECISIONS["fp32"]
        a, b = normal(rng, 300, 8), normal(rng, 8, 300)
        a[299, 3] = np.nan
        reference = product_reference(a, b)
        with np.errstate(invalid="ignore"):
            result = gemm(a, b)
        assert assess_product(reference, result, row, backend="cpu").verified
        result[299] = 1
        found = assess_product(reference, result, row, backend="cpu")
        assert "300 elements are finite where those of fp64 are not" in found.reason

    def test_nothing_is_proved_where_everything_cancels(self):
        a, b = np.ones((3, 4), np.complex64), np.tile([[1], [-1]], (2, 5)).astype(np.complex64)
        found = assess_product(product_reference(a, b), a @ b, PRECISIONS["fp32"], backend="cpu")
        assert (found.verdict, found.rel_frobenius, found.bound) == ("unproven", 0, np.inf)

    @pytest.mark.parametrize("shape", [(70, 40), (40, 70)])
    def test_lines_that_are_not_finite_are_those_of_their_own_product(self, shape):
        rng, row = np.random.default_rng(9), PRECISIONS["fp32"]
        a, b = normal(rng, 2, shape[0], 9), normal(rng, 2, 9, shape[1])
        a[0, 5, 2], b[1, 3, 7] = np.inf, np.nan
        reference = product_reference(a, b)
        with np.errstate(invalid="ignore"):
            result = gemm(a, b)
        assert not freivalds(reference, result, row, "cpu").reason
        for where in ((0, 33, 7), (1, 5, 9)):
            wrong = result.copy()
            wrong[where] += 0.01
            assert f"product {where[0]}" in freivalds(reference, wrong, row, "cpu").reason

    def test_ties_of_16_bits_may_be_rounded_either_way_on_a_gpu(self):
        """Numbers of 12 bits, the last one set, of one sign, so that roundings away add up."""
        rng, row = np.random.default_rng(3), PRECISIONS["fp16"]
        a, b = (
            np.ldexp(rng.integers(2**10, 2**11, (*size, 2)) * 2.0 + 1, -11)
            .astype(np.float32).view(np.complex64)[..., 0]
            for size in ((70, 64), (64, 90))
        )  # fmt: skip
        reference = product_reference(a, b)
        for precision, rounding in (("fp16", None), ("tf32", "half_ulp_truncate")):
            result = gemm(a, b, precision=precision, rounding=rounding)
            found = assess_product(reference, result, row, backend="cuda")
            assert found.verified, found.reason
        assert not assess_product(reference, result, row, backend="cpu").verified

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


def test_a_bound_that_does_not_exist_is_not_passed(monkeypatch):
    monkeypatch.setattr(bounds, "product_bound", lambda *a, **k: float("inf"))
    reference, result = product(np.random.default_rng(18))
    assert (
        "no bound exists"
        in assess_product(reference, result, PRECISIONS["fp32"], backend="cpu").reason
    )
