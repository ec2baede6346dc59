"""Tables and offsets of Hankel plans, as ``cuda/dft/hankel.cuh`` reads them."""

from __future__ import annotations

import numpy as np
import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, arch_for
from argand.dft.candidates import candidates
from argand.dft.hankel import (
    LARGEST_UNPROMOTED,
    HankelPlan,
    core_matrix_table,
    gather_offsets,
    powers,
)
from argand.dft.legality import check_dft_plan
from argand.dft.method import dense
from argand.runtime.plan import PlanError

HOPPER = arch_for(90)
ROW = PRECISIONS["3xfp16"]
PLAN = HankelPlan(251, row_copies=2, warpgroups=1, groups=3, buffers=6, wide_copies=True)


def matrix(tiles: np.ndarray, plan: HankelPlan) -> np.ndarray:
    """The columns of all warpgroups, of core matrices as wgmma takes them: (k, n)."""
    blocks = plan.warpgroups * plan.columns // 8
    return np.block([[tiles[k + n].T for n in range(blocks)] for k in range(2 * plan.num_k_tiles)])


@pytest.mark.parametrize(
    ("length", "row_copies", "warpgroups"),
    [(3, 1, 1), (7, 2, 1), (67, 1, 1), (131, 2, 2), (251, 2, 1), (509, 1, 2),
     (521, 2, 1), (1013, 2, 3)],
)  # fmt: skip
def test_tables_and_offsets_make_a_transform(
    rng: np.random.Generator, length: int, row_copies: int, warpgroups: int
) -> None:
    plan = HankelPlan(length, row_copies, warpgroups, 1, 1, wide_copies=True)
    half = length // 2
    held = core_matrix_table(plan, ROW).view(np.float16).astype(float) * 2.0**-14
    assert held.shape == (2 * ROW.terms, plan.core_matrices, 8, 8)
    assert plan.shared_bytes(ROW) > held.size * 2
    cosines, sines = (matrix(held[i] + held[i + 1], plan) for i in (0, 2))
    # The compensation falls along k and along the columns.
    diagonal = np.add.outer(np.arange(len(cosines)), np.arange(cosines.shape[1]))
    last = plan.warpgroups * plan.columns - 8
    given = np.exp(plan.bias_step(ROW) * (16 * plan.num_k_tiles + 7.5 + last - diagonal))
    cosines, sines = cosines / given, sines / given
    where = gather_offsets(plan).astype(int) // 8
    assert len(where) % 2 == plan.columns_per_copy % 2 == 0  # two offsets are one word
    x = rng.standard_normal(length) + 1j * rng.standard_normal(length)
    found = np.full(length, np.nan, complex)
    for copy in range(row_copies):
        taken = where[plan.columns_before_last_copy - copy * plan.columns_per_copy :][
            : 16 * plan.num_k_tiles
        ]
        even, odd = x[taken] + x[length - taken], x[taken] - x[length - taken]
        even[half:] = odd[half:] = 0
        p, q = even @ cosines, odd @ sines
        found[0] = x[0] + even.sum()
        skipped = copy * plan.columns_per_copy
        for j in range(min(plan.columns_per_copy, half - skipped)):
            n = where[plan.columns_before_last_copy + skipped + j]
            found[n], found[length - n] = x[0] + p[j] - 1j * q[j], x[0] + p[j] + 1j * q[j]
    exact = np.fft.fft(x)
    assert np.linalg.norm(found - exact) < 1e-7 * np.linalg.norm(exact)


@pytest.mark.parametrize("length", [3, 5, 67, 251, 1009])
def test_powers_take_every_residue(length: int) -> None:
    found, offset = powers(length)
    assert sorted(found) == list(range(1, length))
    step = found[1] * pow(int(found[0]), -1, length) % length
    assert (found[1:] == found[:-1] * step % length).all()
    assert found[0] == pow(int(step), offset, length)


def test_orders_have_few_conflicts() -> None:
    found, _ = powers(251)
    fours = np.array([found[i : i + 8 : 2] % 4 for i in range(0, 112, 8)])
    alike = [max(np.bincount(row)) for row in fours]
    assert np.mean(alike) < 2.0  # 2.1 in any order


@pytest.mark.parametrize("length", [3, 67, 131, 199, 251, 283, 307, 349, 449, 509])
def test_k_tiles_are_cached_or_come_in_pairs(length: int) -> None:
    for plan in candidates(dense(length), ROW, HOPPER, wide=True):
        if isinstance(plan, HankelPlan):
            cached = plan.cached_k_tiles(ROW)
            assert 1 <= cached <= plan.num_k_tiles
            assert (plan.num_k_tiles - cached) % 2 == 0
            assert (
                plan.cached_k_tiles(PRECISIONS["fp16"])
                == plan.promotion_k_tile(PRECISIONS["fp16"])
                == 0
            )


@pytest.mark.parametrize("length", [67, 317, 331, 401, 457, 509])
def test_long_mainloops_promote_in_the_middle(length: int) -> None:
    for plan in candidates(dense(length), ROW, HOPPER, wide=True):
        if isinstance(plan, HankelPlan):
            promotion = plan.promotion_k_tile(ROW)
            assert (promotion > 0) == (plan.num_k_tiles > LARGEST_UNPROMOTED)
            if promotion:
                assert abs(promotion - plan.num_k_tiles / 2) <= 1.5
                assert (promotion - plan.cached_k_tiles(ROW)) % 2 == 0


def test_wgmma_is_needed() -> None:
    others = [arch for arch in ARCHITECTURES if arch.target != "sm_90a"]
    for arch in others:
        with pytest.raises(PlanError, match="wgmma needs sm_90a"):
            check_dft_plan(PLAN, ROW, arch)
        assert all(plan.kind == "dense" for plan in candidates(dense(251), ROW, arch, wide=True))
    with pytest.raises(PlanError, match="16-bit operands"):
        check_dft_plan(PLAN, PRECISIONS["3xtf32"], HOPPER)
