"""Lengths that go to cuFFT before a plan of ours: by their factors, and by its own kernels."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import Device, arch_for
from argand.dft.heuristics import choose, own_plan
from argand.dft.legality import wide_fits
from argand.dft.library_choice import FAST_PRIME, LibraryKernels, library_time, several_time
from argand.dft.method import method_for, prime_factors
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.three_kernel_heuristics import three_kernel_time
from argand.dft.two_pass import TwoPassPlan
from argand.dft.two_pass_heuristics import two_pass_time

HOPPER = arch_for(90)


@pytest.mark.parametrize(
    ("length", "kind"),
    [(29, "dense"), (58, "dense"), (145, None), (1860, None), (194, "butterfly"),
     (777, "butterfly"), (869, "butterfly"), (899, "two_factor"), (928, None), (970, "butterfly"),
     (1666, None), (2712, "two_factor"), (3477, "two_factor"), (3616, "two_factor"),
     (3660, "two_factor"), (5887, None), (10_609, "two_factor"), (13_560, "two_factor")],
)  # fmt: skip
def test_lengths_of_two_ways_and_the_library(length: int, kind: str | None) -> None:
    """By factors: two factors and butterflies by their times, and cuFFT's primes 29 and 31."""
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    found = choose(method, PRECISIONS["3xfp16"], HOPPER, wide=wide)
    assert getattr(found.plan, "kind", None) == kind


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize(
    ("length", "kind"),
    [(36, "dense"), (88, None), (96, "dense"), (100, None), (102, None),
     (126, "dense"), (155, None), (209, None), (455, None), (551, None),
     (777, "two_factor"), (1421, None), (2120, "two_factor"), (8073, None)],
)  # fmt: skip
def test_one_term_is_faster_where_two_are_not(
    length: int, kind: str | None, precision: str
) -> None:
    """As they were measured: dense plans, and products without waste."""
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    found = choose(method, PRECISIONS[precision], HOPPER, wide=wide).plan
    assert getattr(found, "kind", None) == kind


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
@pytest.mark.parametrize(
    ("length", "ours"),
    [(14, False), (15, True), (19, False), (23, False), (24, False), (29, True), (32, True),
     (33, False), (35, True), (39, False), (44, True), (65, True), (75, False), (78, False),
     (81, False), (96, True), (98, True), (105, True), (115, True), (121, False), (126, True)],
)  # fmt: skip
def test_dense_lengths_of_small_primes(length: int, ours: bool, precision: str) -> None:
    """As they were measured: rows of a thread, fast stages, and multiples of eight are cuFFT's."""
    choice = choose(method_for(length), PRECISIONS[precision], HOPPER, wide=length % 2 == 0)
    assert (choice.plan is not None) == ours
    assert not choice.needs_library_kernels


@pytest.mark.parametrize("precision", ["3xfp16", "tf32"])
def test_a_slower_memory_hides_what_threads_of_cufft_compute(precision: str) -> None:
    """At 32 a dense plan has 1.2 times cuFFT's speed on an H200, 0.96 to 0.98 on an H100."""
    h100 = Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    for length, ours in ((32, False), (35, True), (48, False), (53, True)):
        row, method = PRECISIONS[precision], method_for(length)
        for memory, expected in ((h100, ours), (1.0, ours or length == 32)):
            found = choose(method, row, HOPPER, wide=True, memory=memory)
            assert (found.plan is not None) == expected


def test_dense_lengths_at_3xtf32() -> None:
    """Products of tf32 take twice the instructions of 16 bits."""
    row = PRECISIONS["3xtf32"]
    ours = {
        length for length in range(15, 128) if max(prime_factors(length)) <= FAST_PRIME
        and choose(method_for(length), row, HOPPER, wide=False).plan is not None
    }  # fmt: skip
    assert ours == {
        15, 21, 25, 27, 28, 30, 32, 35, 42, 44, 45, 46, 49, 51, 54, 55, 57, 60, 63, 65, 77,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("length", "numbers", "blocks", "precision", "kind"),
    [(782, 0, 1, "tf32", "two_factor"), (4180, 0, 1, "3xfp16", "two_factor"),
     (9425, 0, 1, "3xtf32", "butterfly"), (12_000, 0, 1, "3xfp16", "two_factor"),
     (12_000, 0, 1, "3xtf32", None), (9177, 0, 1, "tf32", "butterfly"),
     (10_166, 0, 1, "3xfp16", "butterfly"),
     (10_633, 0, 1, "tf32", None), (1218, 6, 1, "tf32", "two_factor"),
     (1218, 6, 1, "3xfp16", "two_factor"), (1740, 29, 10, "tf32", None),
     (2496, 12, 1, "fp16", "two_factor"), (2496, 12, 1, "3xfp16", None),
     (3509, 11, 1, "tf32", None), (247, 13, 1, "tf32", None), (644, 23, 1, "3xfp16", "two_factor"),
     (1001, 7, 2, "tf32", None), (3135, 11, 2, "tf32", None), (2464, 8, 1, "tf32", "two_factor"),
     (777, 21, 1, "tf32", None), (2068, 44, 1, "3xfp16", None),
     (2120, 40, 1, "tf32", "two_factor"), (2120, 40, 1, "3xfp16", None),
     (1860, 31, 1, "3xfp16", "two_factor"), (1645, 35, 1, "tf32", None),
     (3848, 8, 1, "3xfp16", None), (3355, 55, 1, "3xfp16", None), (3355, 55, 1, "3xtf32", None),
     (3355, 55, 1, "tf32", "two_factor"), (1647, 27, 1, "3xfp16", "two_factor")],
)  # fmt: skip
def test_kernels_of_cufft_decide(
    length: int, numbers: int, blocks: int, precision: str, kind: str | None
) -> None:
    """As an H200's cuFFT was asked and measured: several kernels, few blocks, idle threads."""
    method, row = method_for(length), PRECISIONS[precision]
    wide = wide_fits(method.kind, length, length)
    assert choose(method, row, HOPPER, wide=wide).needs_library_kernels
    kernels = LibraryKernels(several=numbers == 0, numbers=numbers, blocks=blocks)
    found = choose(method, row, HOPPER, wide=wide, library=kernels)
    assert getattr(found.plan, "kind", None) == kind
    assert not found.needs_library_kernels


def test_cufft_is_not_asked_where_ours_is_faster_than_any_of_its_kernels() -> None:
    """Primes from 37 to 61 take it 1.7 times as long as a copy at least, larger ones more."""
    for length, asked in ((2068, False), (777, True), (61 * 32, False), (67 * 55, False)):
        method = method_for(length)
        wide = wide_fits(method.kind, length, length)
        choice = choose(method, PRECISIONS["tf32"], HOPPER, wide=wide)
        assert choice.plan is not None
        assert choice.needs_library_kernels == asked


@pytest.mark.parametrize(
    ("length", "kernels", "measured"),
    [(12_000, LibraryKernels(several=True), 3.34), (10_166, LibraryKernels(several=True), 8.04),
     (10_633, LibraryKernels(several=True), 4.02), (5060, LibraryKernels(several=True), 4.88),
     (5618, LibraryKernels(several=True), 8.07),
     (1740, LibraryKernels(several=False, numbers=29, blocks=10), 1.13),
     (1364, LibraryKernels(several=False, numbers=31, blocks=1), 1.72),
     (874, LibraryKernels(several=False, numbers=2, blocks=1), 4.25),
     (1647, LibraryKernels(several=False, numbers=27, blocks=1), 3.31),
     (3843, LibraryKernels(several=False, numbers=7, blocks=1), 4.93)],
)  # fmt: skip
def test_times_of_cufft(length: int, kernels: LibraryKernels, measured: float) -> None:
    """Over a copy of the numbers, on an H200."""
    assert library_time(length, kernels) == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("length", "measured"),
    [(141, 3.69), (12_416, 6.45), (24_389, 4.52), (29_279, 8.51), (49_664, 6.83), (61_393, 5.97),
     (386_441, 10.5), (923_521, 3.99), (1_040_384, 8.64)],
)  # fmt: skip
def test_times_of_several_kernels_of_cufft(length: int, measured: float) -> None:
    """Over a copy of the numbers, on an H200; small powers take an H100's memory longer."""
    assert several_time(length) == pytest.approx(measured, rel=0.15)
    h100 = Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    assert several_time(28_677, h100) / several_time(28_677) == pytest.approx(1.115, rel=0.05)


@pytest.mark.parametrize(("length", "measured"), [(15_404, 5.96), (65_176, 5.8), (372_884, 6.33)])
def test_times_of_three_kernels(length: int, measured: float) -> None:
    """Over a copy of the numbers, on an H200; an H100 takes 1.22 to 1.25 times as long."""
    plan = own_plan(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert isinstance(plan, ThreeKernelPlan)
    assert three_kernel_time(plan) == pytest.approx(measured, rel=0.1)
    h100 = Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    assert three_kernel_time(plan, h100) / three_kernel_time(plan) == pytest.approx(1.24, rel=0.05)


@pytest.mark.parametrize(
    ("length", "kind"),
    [(12_416, "two_pass"), (14_848, "two_pass"), (21_627, "two_pass"), (24_389, None),
     (29_279, "two_pass"), (41_984, "two_pass"), (79_507, "three_kernel"), (115_168, "two_pass"),
     (229_616, "three_kernel"), (923_521, None), (999_424, "two_pass"), (1_040_384, "two_pass")],
)  # fmt: skip
def test_long_lengths_of_primes_that_cufft_has_too(length: int, kind: str | None) -> None:
    """The lengths have the prime factors 97, 29, 89, 29^3, 67, 41, 43^3, 59 x 61, 31^4 and 127."""
    found = choose(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert getattr(found.plan, "kind", None) == kind


@pytest.mark.parametrize(
    ("length", "measured"),
    [(16_432, 3.74), (35_264, 2.17), (47_190, 2.35), (81_158, 2.44), (137_214, 2.48),
     (214_200, 2.34), (586_339, 4.04), (999_424, 3.79), (25_080, 2.13)],
)  # fmt: skip
def test_times_of_two_passes(length: int, measured: float) -> None:
    """Over a copy of the numbers: of the fastest candidate that was measured on an H200."""
    plan = own_plan(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert isinstance(plan, TwoPassPlan)
    assert two_pass_time(plan) == pytest.approx(measured, rel=0.15)
    h100 = Device("cuda", "H100", memory_rate=3.352e12).relative_memory
    assert two_pass_time(plan, h100) > 1.1 * two_pass_time(plan)
