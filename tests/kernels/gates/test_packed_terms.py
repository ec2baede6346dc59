"""Operands of gates that hold the terms of their numbers, as ``PackedTerms`` makes them."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.gates.operands import packed_terms
from argand.rounding import split


@pytest.mark.parametrize("precision", ["3xfp16", "fp16", "bf16"])
def test_a_word_of_a_packed_operand_has_the_terms_of_a_part(precision: str) -> None:
    row, exponent = PRECISIONS[precision], 5 * PRECISIONS[precision].scaled
    numbers = np.array([1 / 3, -2e-5, 0, np.inf, 7, np.nan], np.float32)
    words = packed_terms(numbers.view(np.complex64), row, exponent).view(np.uint32)
    high = words >> np.uint32(16)
    if row.terms == 1:
        assert not high.any()
    as_fp16, as_bf16 = (words & 0xFFFF).astype(np.uint16), words << np.uint32(16)
    first = as_fp16.view(np.float16) if row.operand.name == "fp16" else as_bf16.view(np.float32)
    expected = split(numbers, row, np.array([exponent]) if row.scaled else None)
    np.testing.assert_array_equal(first.astype(np.float32), expected[0])
    if row.terms > 1:  # and columns of the result are NaN, as by the remainder of an infinity
        second = high.astype(np.uint16).view(np.float16).astype(np.float32)
        np.testing.assert_array_equal(
            second, np.where(np.isfinite(numbers), expected[1], np.float32(np.nan))
        )
