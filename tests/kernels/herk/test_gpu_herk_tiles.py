"""Hermitian products by tiles of their own: fused packing, mirror images, one tile (a GPU)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, herk, launched
from argand.device import arch_for, gpu
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.tuned import trial

from tests.kernels.herk.herk_cases import assert_hermitian, expected, poisoned, tolerance
from tests.normal import normal

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("wgmma")]


def fused(cp: Any, batch: int, n: int, k: int) -> list[GemmChoice]:
    """The candidates whose idle warps pack the rows, of which there are some."""
    sizes = GemmSizes(batch, n, n, k, triangle=True)
    traits = OperandTraits(), OperandTraits(conjugated=True)
    card = gpu(cp.cuda.Device().id)
    question = Question(PRECISIONS["tf32"], sizes, *traits)
    every = candidates(question, card.require_arch(), card.sm_count)
    found = [one for one in every if one.wgmma is not None and one.wgmma.fused_pack]
    assert found
    return found


# Tiles of one matrix and of many in a wave, raster groups that are not full, k-blocks that are not,
# and several groups of panels in one wave, of which the last is needed first.
@pytest.mark.parametrize(
    "shape", [(1, 130, 66), (3, 300, 260), (40, 140, 520), (9, 128, 2050), (2, 1500, 1030),
              (2, 2000, 130), (3, 2100, 2060), (3, 3072, 4096)]
)  # fmt: skip
@pytest.mark.parametrize("op", ["N", "T", "C"])
def test_fused_packing_of_triangles_changes_no_bit(
    cp: Any, rng: np.random.Generator, shape: tuple[int, int, int], op: Any
) -> None:
    batch, n, k = shape
    wide = k + k % 2  # rows begin at multiples of 16 bytes
    rows = cp.asarray(normal(rng, batch, n, wide))[..., :k]
    a = rows if op == "N" else rows.swapaxes(-1, -2)
    for choice in fused(cp, *shape):
        assert choice.wgmma is not None
        results = []
        for packs in (False, True, True):
            # What a call before left in the memory of this one must not be taken for planes.
            poison = cp.full(2 * batch * n * (k + 64), np.nan, cp.float32)
            del poison
            out = poisoned(cp, (batch, n, n))
            with trial(replace(choice, wgmma=replace(choice.wgmma, fused_pack=packs))):
                results.append(herk(a, op=op, precision="tf32", out=out))
        assert all(bool((x == results[0]).all()) for x in results)
        assert_in_bound(cp, results[-1][-1], rows[-1].conj() if op == "C" else rows[-1])


def assert_in_bound(cp: Any, found: Any, rows: Any) -> None:
    """Hermitian to the bit, and each element within its bound of the sum in fp64."""
    assert_hermitian(found.get())
    x = rows.astype(cp.complex128)
    value, size = x @ x.conj().T, abs(x) @ abs(x).T
    limit = 2**0.5 * tolerance("tf32", rows.shape[-1], "cuda")
    assert bool((abs(found - value) <= limit * size).all())


def test_matrices_of_a_wave_each(cp: Any, rng: np.random.Generator) -> None:
    """On 132 multiprocessors, which leave 4 of 136 tiles of each: some of these are split."""
    a = cp.asarray(normal(rng, 5, 2000, 1030))
    for choice in fused(cp, 5, 2000, 1030):
        results = []
        for _ in range(2):
            out = poisoned(cp, (5, 2000, 2000))
            with trial(choice):
                results.append(herk(a, precision="tf32", out=out))
        assert bool((results[0] == results[1]).all())
        for found, rows in zip(results[0], a, strict=True):
            assert_in_bound(cp, found, rows)


@pytest.mark.parametrize("form", ["full", "triangle"])
@pytest.mark.parametrize("scalars", [{}, {"alpha": -0.5}, {"alpha": 0.5, "beta": 2.0}], ids=str)
@pytest.mark.parametrize("n", [260, 389])
def test_forms_and_scalars(
    cp: Any, rng: np.random.Generator, form: Any, scalars: dict[str, Any], n: int
) -> None:
    """Every epilogue of a triangle."""
    a = cp.asarray(normal(rng, 30, n, 320))
    shape = (30, n, n) if form == "full" else (30, n * (n + 1) // 2)
    c = cp.asarray(normal(rng, *shape)) if "beta" in scalars else None
    for choice in fused(cp, 30, n, 320):
        assert choice.wgmma is not None
        results = []
        for packs in (False, True):
            with trial(replace(choice, wgmma=replace(choice.wgmma, fused_pack=packs))):
                out = poisoned(cp, shape)
                results.append(herk(a, c, precision="tf32", form=form, out=out, **scalars).get())
        np.testing.assert_array_equal(*results)
        assert np.isfinite(results[1]).all()


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize("op", ["N", "T"])
def test_mirror_images_of_the_largest_tiles(
    cp: Any, rng: np.random.Generator, precision: str, op: Any
) -> None:
    """Rows of the result begin anywhere in a sector, so lanes exchange columns."""
    n, k = 387, 150
    lines, width = (n, k) if op == "N" else (k, n)
    a = cp.asarray(normal(rng, 2, lines, width + width % 2))[..., :width]
    traits = OperandTraits(k_major=op == "N"), OperandTraits(k_major=op == "N", conjugated=True)
    question = Question(PRECISIONS[precision], GemmSizes(2, n, n, k, triangle=True), *traits)
    every = candidates(question, arch_for(90), gpu(a.device.id).sm_count)
    plans = [x for x in every if x.wgmma is not None and x.wgmma.block_n == 128]
    assert {x.wgmma.storage for x in plans if x.wgmma is not None} == {"fp32", "planar"}
    value, size = expected(a.get(), op)
    limit = 2**0.5 * tolerance(precision, k, "cuda")
    for choice in plans:
        out = poisoned(cp, value.shape)
        with trial(choice), launched() as names:
            herk(a, op=op, precision=precision, out=out)
        assert "128x128" in names[0]
        assert_hermitian(out.get())
        assert (abs(out.get() - value) <= limit * size).all()
