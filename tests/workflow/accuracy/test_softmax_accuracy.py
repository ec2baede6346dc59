"""Softmax: references, error measures and verdicts."""

import numpy as np
import pytest
from argand import PRECISIONS, softmax

from workflow.accuracy.references import softmax_reference
from workflow.accuracy.softmax_accuracy import assess_softmax

NAMES = list(PRECISIONS)


class TestSoftmax:
    def test_an_error_just_outside_the_bound_fails(self):
        x = np.random.default_rng(15).normal(0, 3, (5, 100)).astype(np.float32)
        reference, row = softmax_reference(x), PRECISIONS["fp32"]
        result = softmax(x)
        accuracy = assess_softmax(reference, result, row, backend="cpu")
        assert accuracy.verified, accuracy.reason
        assert accuracy.measures["max_ulp"] < 20
        assert accuracy.measures["row_sum_error"] < 1e-6
        wrong = reference.values.astype(np.float32)
        wrong[3, 50] *= 1 + 100 * row.u
        assert "row 3" in assess_softmax(reference, wrong, row, backend="cpu").reason

    def test_a_lower_precision_does_not_pass_for_fp32(self):
        x = np.random.default_rng(16).normal(0, 3, (5, 100)).astype(np.float32)
        reference = softmax_reference(x)
        for name in ("tf32", "fp16", "bf16"):
            result = softmax(x, precision=name)
            assert assess_softmax(reference, result, PRECISIONS[name], backend="cpu").verified
            assert not assess_softmax(reference, result, PRECISIONS["fp32"], backend="cpu").verified

    @pytest.mark.parametrize("name", NAMES)
    def test_numbers_far_below_the_largest_magnitude_keep_their_bits(self, name):
        """A masked row has such a magnitude: nothing is scaled by it, as operands of products."""
        x = np.random.default_rng(18).normal(0, 3, (5, 100)).astype(np.float32)
        x[:, 7] = -1e9
        reference, result = softmax_reference(x), softmax(x, precision=name)
        found = assess_softmax(reference, result, PRECISIONS[name], backend="cpu")
        assert found.verified, found.reason

    def test_rows_that_do_not_sum_to_one_fail_where_elements_could_pass(self):
        x = np.random.default_rng(17).normal(0, 30, (5, 100)).astype(np.float32)
        reference, row = softmax_reference(x), PRECISIONS["bf16"]
        result = softmax(x, precision="bf16") * np.float32(1.001)
        reason = assess_softmax(reference, result, row, backend="cpu").reason
        assert "row_sum_error 0.001 is" in reason

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
            assert accuracy.measures["max_ulp"] < 400


def test_what_vanishes_in_fp64_may_come_back_by_rounding_the_input():
    """At bf16 both numbers are 132096: the second's relative bound is infinite and it is exactly 0.

    Infinity times zero once made that a failure, "off by inf times its bound".
    """
    x = np.array([[132597.0, 131594.0]], np.float32)
    reference = softmax_reference(x)
    assert reference.values[0, 1] == 0
    got = softmax(x, precision="bf16")
    np.testing.assert_array_equal(got, 0.5)
    found = assess_softmax(reference, got, PRECISIONS["bf16"], backend="cpu")
    assert "times its bound" not in found.reason


def test_a_value_just_above_the_range_may_be_flushed_and_an_error_beyond_that_may_not():
    """Computed a little below 2^-126 it becomes 0 on a GPU: the error is the whole value."""
    row = PRECISIONS["fp32"]
    x = np.zeros((1, 64), np.float32)
    x[0, 1] = np.nextafter(np.float32(np.log(63) - 126 * np.log(2)), np.float32(0))
    reference = softmax_reference(x)
    assert 1 < reference.values[0, 1] * 2.0**126 < 1 + 2.0**-16
    flushed = reference.values.astype(np.float32)
    flushed[0, 1] = 0
    found = assess_softmax(reference, flushed, row, backend="cuda")
    assert found.verified, found.reason
    x[0, 1] += np.log(2)  # twice the smallest normal number
    reference = softmax_reference(x)
    planted = reference.values.astype(np.float32)
    planted[0, 1] = 0
    found = assess_softmax(reference, planted, row, backend="cuda")
    assert not found.verified
    assert "an element of row 0 is off by" in found.reason


def test_logits_beyond_the_range_are_named():
    """A row of which a logit is infinite at fp32, and one that has only -inf there, are NaN."""
    x = np.array([[0.0, 1e39], [-1e300, -1e300], [-1e300, 0.0]])
    with np.errstate(all="ignore"):
        got = softmax(x, precision="fp32")
    found = assess_softmax(softmax_reference(x), got, PRECISIONS["fp32"], backend="cpu")
    said = "2 rows are NaN where those of fp64 are not; logits beyond 3.4e+38, the largest float32"
    assert found.verdict == "wrong"
    assert found.reason.startswith(said)
