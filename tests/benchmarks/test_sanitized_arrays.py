"""The sanitizer's Hermitian products and systems, images, banks and spectra: all are right."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS

from benchmarks.sanitize.channelise import banks
from benchmarks.sanitize.herk import EXACT, products
from benchmarks.sanitize.hermitian import solutions
from benchmarks.sanitize.image import images
from benchmarks.sanitize.spectrum import estimates


@pytest.mark.parametrize("precision", [EXACT, *PRECISIONS])
def test_every_hermitian_product_is_within_its_bound(precision: str) -> None:
    assert {name: ratio for name, ratio in products(precision, np) if not ratio <= 1} == {}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_image_is_within_its_bound(precision: str) -> None:
    assert {name: ratio for name, ratio in images(precision, np) if not ratio <= 1} == {}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_filter_bank_is_within_its_bound(precision: str) -> None:
    assert {name: ratio for name, ratio in banks(precision, np) if not ratio <= 1} == {}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_spectral_estimate_is_within_its_bound(precision: str) -> None:
    assert {name: ratio for name, ratio in estimates(precision, np) if not ratio <= 1} == {}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_every_hermitian_system_is_within_its_bound(dtype: str) -> None:
    assert {name: ratio for name, ratio in solutions(dtype, np) if not ratio <= 1} == {}
