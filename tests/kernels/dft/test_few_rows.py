"""The plans of few transforms, which would leave most of a card idle, without a GPU."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES, Arch, Device, arch_for
from argand.dft import few_rows
from argand.dft.butterfly import ButterflyPlan
from argand.dft.few_rows import SHORT, plan_of_few_rows, with_few_rows
from argand.dft.heuristics import choose
from argand.dft.legality import check_dft_plan, wide_fits
from argand.dft.method import method_for
from argand.dft.plan import dft_source, kernel_name

from tests.kernels.compiled import assert_clean

FEW = few_rows.FEW_NUMBERS
HOPPER = arch_for(90)


@pytest.fixture(autouse=True)
def _as_called(_own_kernels_at_few_rows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows take the plans that calls take."""
    monkeypatch.setattr(few_rows, "FEW_NUMBERS", FEW)


def _card(sm_count: int, arch: Arch = HOPPER) -> Device:
    return Device("cuda", "a card", 0, arch, sm_count)


def _kind(rows: int, length: int, precision: str, card: Device) -> str | None:
    """Return the kind of plan of contiguous rows, None for cuFFT."""
    method, row = method_for(length), PRECISIONS[precision]
    wide = wide_fits(method.kind, length, length)
    whole = choose(method, row, card.require_arch(), wide=wide)
    return getattr(with_few_rows(whole, row, rows, length, card).plan, "kind", None)


@pytest.mark.parametrize(
    ("rows", "length", "precision", "kind"),
    [(12_235, 29, "tf32", None), (13_019, 37, "3xfp16", "dense"), (5421, 53, "3xfp16", "dense"),
     (4589, 103, "3xfp16", "butterfly"), (4589, 103, "tf32", "dense"),
     (13_873, 103, "3xfp16", "dense"), (3850, 122, "3xfp16", "butterfly"),
     (3850, 122, "3xtf32", "butterfly"), (8356, 122, "tf32", "dense"),
     (42_497, 163, "3xfp16", "hankel"), (1350, 337, "3xfp16", "butterfly"),
     (5066, 337, "fp16", "hankel"), (2801, 443, "3xfp16", "butterfly"),
     (70_814, 26, "3xfp16", None), (240_728, 26, "3xfp16", "dense"), (28_719, 26, "tf32", None),
     (58_861, 65, "tf32", "dense"), (13_651, 98, "tf32", None), (107_736, 31, "3xfp16", "dense"),
     (8000, 1031, "3xfp16", "butterfly")],
)  # fmt: skip
def test_tables_take_a_part_of_the_time(
    rows: int, length: int, precision: str, kind: str | None
) -> None:
    """The choice is what an H200 ran fastest: dense or Hankel plans, convolutions or cuFFT."""
    assert _kind(rows, length, precision, _card(132)) == kind


def test_what_decides_is_the_rows_of_a_multiprocessor() -> None:
    kinds = [_kind(1773, 103, "3xfp16", _card(sm_count)) for sm_count in (132, 16)]
    assert kinds == ["butterfly", "dense"]


@pytest.mark.parametrize(
    ("rows", "length", "kind"),
    [(5, 4159, "butterfly"), (10, 10_193, "butterfly"), (4, 2911, "butterfly"),
     (103, 3503, "butterfly"), (150, 3294, "two_factor"), (6, 4148, "butterfly"),
     (5, 5256, None), (4, 11_972, None), (2, 11_686, "butterfly")],
)  # fmt: skip
def test_a_row_of_each_block(rows: int, length: int, kind: str | None) -> None:
    """The chain of a convolution is shorter than that of two factors, as was measured.

    cuFFT has several kernels for primes up to 127, which are faster than a long chain.
    """
    assert _kind(rows, length, "3xfp16", _card(132)) == kind


@pytest.mark.parametrize("arch", [ARCHITECTURES[0], HOPPER], ids=lambda arch: arch.target)
@pytest.mark.parametrize("length", [41, 148, 377, 509])
def test_few_rows_are_spread_over_the_card(arch: Arch, length: int) -> None:
    """Each multiprocessor has its rows at once; where those are too many, the choice stays.

    148 and 377 are cuFFT's at many rows.
    """
    method, card, row = method_for(length), _card(132, arch), PRECISIONS["tf32"]
    whole = choose(method, row, arch, wide=False)
    for rows, groups in ((1, 1), (132, 1), (133, 2), (400, 4), (528, 4)):
        plan = with_few_rows(whole, row, rows, length, card).plan
        assert isinstance(plan, ButterflyPlan)
        check_dft_plan(plan, row, arch)
        assert (plan.length, plan.groups) == (length, groups)
        assert 32 * plan.warps * min(plan.radices) >= plan.size
    assert with_few_rows(whole, row, -(-FEW * 132 // length), length, card) is whole


@pytest.mark.parametrize("length", [32, 360, 512, 23 * 19, 5 * 17 * 31])
def test_few_rows_of_small_prime_factors_are_cufft_s(length: int) -> None:
    assert _kind(1, length, "3xfp16", _card(132)) is None


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
