"""Products of a short k that their own blocks convert for wgmma (an sm_90 GPU)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, launched
from argand.gemm.candidates import GemmChoice
from argand.gemm.short_k_plan import MAX_K, ShortKPlan

from tests.kernels.gemm.product_cases import OPS, check, normal, repeats_bit_for_bit, stored
from tests.kernels.gemm.wgmma_cases import overridden

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]
PRECISION = "3xfp16"
CHOICE = GemmChoice(short_k=ShortKPlan())


@pytest.mark.parametrize("k", [1, 16, 17, 47, 48, 64, 70, 97, 130, MAX_K, 190])
def test_every_number_of_chunks(cp: Any, rng: np.random.Generator, k: int) -> None:
    for m, n in ((1, 1), (64, 64), (65, 130), (200, 33), (3, 257)):
        a, b, c = normal(rng, m, k), normal(rng, k, n), normal(rng, m, n)
        with overridden(CHOICE), launched() as names:
            check(cp, a, b, precision=PRECISION)
            check(cp, a, b, c, precision=PRECISION, alpha=0.5 - 2j, beta=-1.25 + 0.75j)
        assert set(names) == {"short k 64x64: A in place, B in place"}


@pytest.mark.parametrize("op_a", OPS)
@pytest.mark.parametrize("op_b", OPS)
def test_ops_and_batches(cp: Any, rng: np.random.Generator, op_a: str, op_b: str) -> None:
    for left, right in (((3,), (3,)), ((), (2, 2)), ((4,), ())):
        a, b = normal(rng, *left, 67, 61), normal(rng, *right, 61, 69)
        with overridden(CHOICE):
            check(
                cp, stored(a, op_a), stored(b, op_b), op_a=op_a, op_b=op_b,
                precision=PRECISION, alpha=1j,
            )  # fmt: skip


def test_operands_and_results_at_any_stride(cp: Any, rng: np.random.Generator) -> None:
    """Nothing beside the result changes."""
    a, b = (cp.asarray(normal(rng, *shape)) for shape in ((70, 50), (50, 90)))
    apart = cp.zeros((140, 150), "complex64")[::2, ::3]
    apart[...] = a
    with overridden(CHOICE):
        right = gemm(a, b, precision=PRECISION)
        assert bool((gemm(apart, b, precision=PRECISION) == right).all())
        for turned in (False, True):
            memory = cp.full((180, 210) if turned else (140, 270), -1, "complex64")
            out = memory.T[::3, ::2] if turned else memory[::2, ::3]
            gemm(a, b, precision=PRECISION, out=out)
            assert bool((out == right).all())
            out[...] = -1
            assert bool((memory == -1).all())


def test_each_line_has_its_own_range(cp: Any, rng: np.random.Generator) -> None:
    a, b = normal(rng, 70, 100), normal(rng, 100, 80)
    a *= np.float32(10) ** rng.integers(-18, 18, (70, 1)).astype("float32")
    b *= np.float32(10) ** rng.integers(-18, 18, (1, 80)).astype("float32")
    a[5], b[:, 7] = 0, 0
    with overridden(CHOICE):
        found = gemm(cp.asarray(a), cp.asarray(b), precision=PRECISION).get()
    wide = a.astype(complex), b.astype(complex)
    lines = np.linalg.norm(wide[0], axis=1)[:, None] * np.linalg.norm(wide[1], axis=0)
    assert (abs(found - wide[0] @ wide[1]) <= 1e-6 * lines).all()


def test_infinities_and_nan_stay_in_their_lines(cp: Any, rng: np.random.Generator) -> None:
    a, b = normal(rng, 70, 50), normal(rng, 50, 90)
    a[3, 2], b[1, 30] = np.nan, np.inf
    clean = np.ones((70, 90), bool)
    clean[3], clean[:, 30] = False, False
    with overridden(CHOICE):
        found = gemm(cp.asarray(a), cp.asarray(b), precision=PRECISION).get()
    assert np.isnan(found[3]).all()
    assert not np.isfinite(found[:, 30]).any()
    assert np.isfinite(found[clean]).all()


def test_a_tile_for_each_multiprocessor_takes_it(cp: Any, rng: np.random.Generator) -> None:
    a, b = cp.asarray(normal(rng, 603, 86)), cp.asarray(normal(rng, 86, 810))
    with launched() as names:
        gemm(a, b, precision=PRECISION)
    assert all(name.startswith("short k") for name in names)
    assert repeats_bit_for_bit(lambda: gemm(a, b, precision=PRECISION))
