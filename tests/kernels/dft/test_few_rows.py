"""The plans of few transforms, which would leave most of a card idle, without a GPU."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch, Device, arch_for
from argand.dft import heuristics
from argand.dft.butterfly import ButterflyPlan
from argand.dft.heuristics import SHORT, choose, plan_of_few_rows, with_few_rows
from argand.dft.legality import check_dft_plan
from argand.dft.method import method_for
from argand.dft.plan import dft_source, kernel_name

from tests.kernels.compiled import assert_clean

FEW = heuristics.FEW_NUMBERS
HOPPER = arch_for(90)


@pytest.fixture(autouse=True)
def _as_called(_own_kernels_at_few_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows take the plans that calls take."""
    monkeypatch.setattr(heuristics, "FEW_NUMBERS", FEW)


def _card(sm_count: int, arch: Arch = HOPPER) -> Device:
    return Device("cuda", "a card", 0, arch, sm_count)


@pytest.mark.parametrize("length", [37, 1031, 4093])
def test_few_rows_of_dense_lengths_and_primes_are_cufft_s(length: int) -> None:
    method = method_for(length)
    whole = choose(method, PRECISIONS["3xtf32"], HOPPER, wide=False)
    assert whole.plan is not None
    enough = -(-FEW * 132 // length)
    assert with_few_rows(whole, method, enough, _card(132)) is whole
    assert with_few_rows(whole, method, enough - 1, _card(132)).plan is None
    assert with_few_rows(whole, method, enough - 1, _card(66)) is whole


@pytest.mark.parametrize("arch", [ARCHITECTURES[0], HOPPER], ids=lambda arch: arch.target)
@pytest.mark.parametrize("length", [41, 148, 377, 509])
def test_few_rows_are_spread_over_the_card(arch: Arch, length: int) -> None:
    """Each multiprocessor has its rows at once; where those are too many, the choice stays.

    148 and 377 are cuFFT's at many rows.
    """
    method, card = method_for(length), _card(132, arch)
    whole = choose(method, PRECISIONS["tf32"], arch, wide=False)
    for rows, groups in ((1, 1), (132, 1), (133, 2), (400, 4), (528, 4)):
        plan = with_few_rows(whole, method, rows, card).plan
        assert isinstance(plan, ButterflyPlan)
        check_dft_plan(plan, PRECISIONS["tf32"], arch)
        assert (plan.length, plan.groups) == (length, groups)
        assert 32 * plan.warps * min(plan.radices) >= plan.size
    assert with_few_rows(whole, method, -(-FEW * 132 // length), card) is whole


@pytest.mark.parametrize("length", [32, 360, 512, 23 * 19])
def test_few_rows_of_small_prime_factors_are_cufft_s(length: int) -> None:
    method = method_for(length)
    whole = choose(method, PRECISIONS["3xfp16"], HOPPER, wide=True)
    assert with_few_rows(whole, method, 1, _card(132)).plan is None


def test_few_rows_of_long_products_are_ours() -> None:
    method = method_for(29 * 3 * 37)
    whole = choose(method, PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert whole.plan is not None
    assert with_few_rows(whole, method, 1, _card(132)) is whole


@pytest.mark.exhaustive
def test_each_plan_of_few_rows_compiles(arch: Arch) -> None:
    """The longest of the plans that differ in length alone, whose threads hold the most numbers."""
    longest: dict[tuple[object, ...], ButterflyPlan] = {}
    for length in SHORT:
        for rows in (132, 264, 528):
            plan = plan_of_few_rows(length, rows, _card(132, arch))
            if plan is not None:
                longest[plan.radices, plan.warps, plan.groups] = plan
    for plan in longest.values():
        precision = PRECISIONS["3xfp16"]
        source = dft_source(plan, precision)
        assert_clean(source, arch.target, kernel_name(plan, precision))
