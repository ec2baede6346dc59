"""Families of kernels that a caller asks for, and what records say of them (a GPU).

The mma.sync family is run with every tile of an A100's plans, on whatever card there is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, DeviceError, gemm, launched, pack, pairs, to_pairs
from argand.gemm.choice import GemmChoice
from argand.gemm.question import GemmSizes
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm80.tiles import mma_tiles
from argand.gemm.sm90.tiles import with_rounded_rows
from argand.runtime.plan import WGMMA_TARGET

from tests.kernels.compiled import ARCHS
from tests.kernels.gemm.product_cases import (
    OPS,
    assert_within,
    check,
    magnitude,
    normal,
    stored,
    summation,
)
from tests.kernels.gemm.sm90.wgmma_cases import first_choices, overridden
from tests.kernels.precisions import SINGLE_HALF, TENSOR

pytestmark = pytest.mark.gpu

TILES = [
    pytest.param(precision, tile, id=f"{precision} {tile.name}")
    for precision in TENSOR
    for tile in mma_tiles(PRECISIONS[precision], ARCHS["sm_80"])
]


@pytest.mark.parametrize(("precision", "tile"), TILES)
def test_every_tile_of_an_a100(
    cp: Any, rng: np.random.Generator, precision: str, tile: MmaPlan
) -> None:
    """Ragged, a k whose absmax blocks find, and one of the absmax kernel; C is not read."""
    a, b = normal(rng, 150, 45), normal(rng, 45, 141)
    c = normal(rng, 150, 141)
    turned = [stored(normal(rng, 3, 134, 300), "C"), stored(normal(rng, 300, 130), "T")]
    with overridden(GemmChoice(mma=tile)), launched() as names:
        check(cp, a, b, c, precision=precision, alpha=0.5 - 2j, beta=-1.25 + 0.75j)
        check(cp, a, b, np.full_like(c, np.nan), precision=precision)
        check(cp, *turned, op_a="C", op_b="T", precision=precision, alpha=1j)
    scaled = PRECISIONS[precision].scaled
    shape = f"mma.sync {tile.block_m}x{tile.block_n}x{tile.block_k} "
    assert len(names) <= 1 + scaled, names
    assert all(name.startswith(shape) for name in names)
    assert any(name.startswith(f"mma.sync {tile.name}:") for name in names)


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("ops", ["NN", "CT"])
def test_a_k_of_every_number_of_mmas(
    cp: Any, rng: np.random.Generator, precision: str, ops: str
) -> None:
    """A kernel knows how many a k within its stages takes; the last one is full or has one k."""
    tile, mma_k = MmaPlan(32, 32, 32, 2, 2, 3), PRECISIONS[precision].operand.mma_k
    options = {"precision": precision, "op_a": ops[0], "op_b": ops[1]}
    with overridden(GemmChoice(mma=tile)):
        for end in range(mma_k, 3 * tile.block_k + 1, mma_k):
            for k in (end - mma_k + 1, end):
                a, b = normal(rng, 45, k), normal(rng, k, 70)
                check(cp, stored(a, ops[0]), stored(b, ops[1]), **options)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op", OPS)
def test_large_products_of_the_family_that_is_asked_for(
    cp: Any, rng: np.random.Generator, precision: str, op: str
) -> None:
    """By its own choice of a tile; without asking, a Hopper card takes wgmma for these."""
    a, b = stored(normal(rng, 1030, 310), op), stored(normal(rng, 310, 1100), op)
    hopper = card(cp).target == WGMMA_TARGET
    for kernels in ("mma.sync", "mma.sync", None):  # the second call is from the call cache
        with launched() as names:
            check(cp, a, b, op_a=op, op_b=op, precision=precision, kernels=kernels)
        (name,) = names
        expected = kernels or ("wgmma" if hopper else "mma.sync")
        assert name.split()[0] == expected


def card(cp: Any) -> Any:
    from argand.device import gpu

    return gpu(cp.cuda.Device().id)


@pytest.mark.parametrize("precision", TENSOR)
def test_batches_and_places_of_mma_sync(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """Broadcast, strided and reversed leading axes, and a result that lies transposed."""
    a, b = normal(rng, 4, 3, 200, 90), normal(rng, 3, 90, 170)
    left, right = cp.asarray(a), cp.asarray(b)
    for view in (np.s_[:], np.s_[::2], np.s_[:, ::-1], np.s_[1, :2]):
        y, there = (b[:2], right[:2]) if view == np.s_[1, :2] else (b, right)
        out = cp.full((*a[view].shape[:-2], 170, 200), np.nan, cp.complex64).swapaxes(-1, -2)
        gemm(left[view], there, precision=precision, kernels="mma.sync", out=out)
        slack = summation(90, precision) * magnitude(a[view], y, None)
        assert_within(out.get(), gemm(a[view], y, precision=precision), slack)


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("op", OPS)
def test_a_packed_copy_for_mma_sync(
    cp: Any, rng: np.random.Generator, precision: str, op: str
) -> None:
    """As an A100 has it: the product has the bits of the plain one."""
    a, b = cp.asarray(normal(rng, 2, 140, 70)), cp.asarray(stored(normal(rng, 70, 90), op))
    packed = pack(b, precision, side="b", op=op, kernels="mma.sync")
    assert packed.nbytes == b.nbytes
    plain = gemm(a, b, op_b=op, precision=precision, kernels="mma.sync")
    for _ in range(2):
        with launched() as names:
            found = gemm(a, packed, precision=precision, kernels="mma.sync")
        assert bool((found == plain).all())
        assert names[0].startswith("mma.sync")


@pytest.mark.parametrize("precision", SINGLE_HALF)
def test_pairs_by_mma_sync(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """They are widened, and a result of pairs is rounded after."""
    a, b = (to_pairs(normal(rng, *shape), precision) for shape in ((140, 70), (70, 90)))
    left, right = (pairs(cp.asarray(x.array), precision) for x in (a, b))
    plain = gemm(left.to_complex64(), right.to_complex64(), precision=precision, kernels="mma.sync")
    with launched() as names:
        found = gemm(left, right, precision=precision, kernels="mma.sync")
        halves = gemm(left, right, precision=precision, kernels="mma.sync", output="complex-half")
    assert bool((found == plain).all())
    assert bool((halves.array == to_pairs(plain, precision).array).all())
    assert all(name.startswith("mma.sync") for name in names)


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.usefixtures("wgmma")
def test_small_packed_operands_take_the_faster_family(
    cp: Any, rng: np.random.Generator, precision: str, side: str, op: str
) -> None:
    """A copy beside the planes has the bits of the plain product; the planes multiply too."""
    a, b = normal(rng, 2, 64, 70), normal(rng, 70, 80)
    left, right = cp.asarray(stored(a, op)), cp.asarray(stored(b, op))
    ops = {"op_a": op, "op_b": op}
    plain = gemm(left, right, precision=precision, kernels="mma.sync", **ops)
    x = left if side == "a" else right
    packed = pack(x, precision, side=side, op=op)
    assert packed.nbytes > pack(x, precision, side=side, op=op, kernels="wgmma").nbytes
    ops[f"op_{side}"] = "N"
    given = (packed, right) if side == "a" else (left, packed)
    x[...] = np.nan  # what was packed is kept
    slack = 2 * summation(70, precision) * magnitude(a, b, None)
    for kernels in (None, None, "wgmma", "mma.sync"):
        with launched() as names:
            found = gemm(*given, precision=precision, kernels=kernels, **ops)
        assert names[0].startswith(kernels or "mma.sync")
        if kernels == "wgmma":
            assert_within(found.get(), plain.get(), slack)
        else:
            assert f"{side.upper()} copied before" in names[0]
            assert bool((found == plain).all())


@pytest.mark.usefixtures("wgmma")
def test_planes_are_wgmmas(cp: Any) -> None:
    """Those of large matrices, and where they were packed for it alone."""
    for size, kernels in ((600, None), (8, "wgmma")):
        eye = cp.eye(size, dtype=cp.complex64)
        packed = pack(eye, "tf32", kernels=kernels)
        with pytest.raises(ValueError, match=r"no mma.sync for tf32 on Hopper .* packed operands"):
            gemm(packed, eye, precision="tf32", kernels="mma.sync")


def test_a_family_that_the_card_has_not(cp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from argand.device import gpu
    from argand.gemm import gpu as cuda_gemm
    from argand.gemm.pack import api as pack_api

    older = replace(gpu(cp.cuda.Device().id), arch=ARCHS["sm_80"])
    monkeypatch.setattr(cuda_gemm, "gpu", lambda index: older)
    monkeypatch.setattr(pack_api, "gpu", lambda index: older)
    eye = cp.eye(8, dtype=cp.complex64)
    for call in (
        lambda: gemm(eye, eye, precision="tf32", kernels="wgmma"),
        lambda: pack(eye, "tf32", kernels="wgmma"),
    ):
        with pytest.raises(DeviceError, match=r"wgmma needs sm_90a, and .* is sm_80"):
            call()


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.usefixtures("wgmma")
def test_a_record_names_the_plan_that_ran(
    cp: Any, rng: np.random.Generator, precision: str
) -> None:
    """In the first call of a form and in later ones."""
    a, b = cp.asarray(normal(rng, 500, 700)), cp.asarray(normal(rng, 700, 300))
    seen = set()
    for choice in first_choices(cp, precision, GemmSizes(1, 500, 300, 700)):
        with overridden(choice):
            lists = []
            for _ in range(2):
                with launched() as names:
                    gemm(a, b, precision=precision)
                lists.append(names)
        assert lists[0] == lists[1]
        (name,) = lists[0]
        assert choice.wgmma is not None
        plan = with_rounded_rows(choice.wgmma, PRECISIONS[precision])
        assert name.startswith(f"wgmma {plan.name}: {'B' if choice.swapped else 'A'} ")
        assert ("fused packing" in name) == choice.wgmma.fused_pack
        assert ("split-K slices" in name) == (choice.split_k_slices > 1)
        seen.add(name)
    assert len(seen) > 1
    with launched() as names:
        gemm(a, b, precision="fp32")
    assert names == []  # cuBLAS: the method's name says it


@pytest.mark.parametrize("precision", TENSOR)
@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7F800001])
def test_nan_of_any_bits_and_either_part(
    cp: Any, rng: np.random.Generator, precision: str, bits: int
) -> None:
    """A NaN is in all results of its row or column, and in no others."""
    a, b = normal(rng, 70, 45), normal(rng, 45, 53)
    a.view(np.uint32)[3, 2 * 9 + 1] = bits
    b.view(np.uint32)[40, 2 * 30] = bits
    found = gemm(cp.asarray(a), cp.asarray(b), precision=precision, kernels="mma.sync").get()
    for part in (found.real, found.imag):
        expected = np.zeros(found.shape, bool)
        expected[3], expected[:, 30] = True, True
        assert (np.isnan(part) == expected).all()


@pytest.mark.exhaustive
@pytest.mark.parametrize("k", [7, 40])
def test_rows_further_apart_than_32_bits_count(cp: Any, rng: np.random.Generator, k: int) -> None:
    """Rows of A and of the result, by mma.sync and by fma; it takes 35 GB."""
    distance = 2**31 + 3
    a, b = normal(rng, 2, k), normal(rng, k, 35)
    far, out = (
        cp.lib.stride_tricks.as_strided(
            cp.empty(distance + columns, cp.complex64), (2, columns), (8 * distance, 8)
        )
        for columns in (k, 35)
    )
    far[...] = cp.asarray(a)
    with launched() as names:
        gemm(far, cp.asarray(b), out=out, precision="tf32", kernels="mma.sync" if k > 24 else None)
    assert "mma.sync" in names[0] or "fma" in names[0]
    slack = summation(k, "tf32")
    assert_within(out.get(), gemm(a, b, precision="tf32"), slack * magnitude(a, b, None, beta=0))
