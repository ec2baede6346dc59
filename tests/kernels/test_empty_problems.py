"""Products, transforms and softmaxes of no elements, on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS

from tests.kernels.empty_cases import check_empty_products, check_empty_rows


@pytest.mark.each_value
@pytest.mark.parametrize("op", ["N", "T", "C"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_gemm(precision: str, op: str) -> None:
    check_empty_products(np, precision, op)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows(precision: str) -> None:
    check_empty_rows(np, precision)
