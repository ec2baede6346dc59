"""Where cuFFT goes before a plan of ours: by a length's factors, and by cuFFT's own kernels."""

from __future__ import annotations

import pytest
from argand import PRECISIONS
from argand.device import ARCHITECTURES
from argand.dft.heuristics import choose
from argand.dft.legality import wide_fits
from argand.dft.library_choice import FAST_PRIME, LibraryKernels
from argand.dft.method import method_for, prime_factors

HOPPER = next(arch for arch in ARCHITECTURES if arch.target == "sm_90a")


@pytest.mark.parametrize(
    ("length", "kind"),
    [(29, "dense"), (58, "dense"), (145, None), (1860, "two_factor"), (3700, None),
     (194, "butterfly"), (777, None), (869, "butterfly"), (899, "two_factor"),
     (915, "two_factor"), (928, None), (2712, "two_factor"), (3616, "two_factor"),
     (3660, "two_factor"), (5887, None), (10_609, "two_factor"), (13_560, "two_factor")],
)  # fmt: skip
def test_lengths_of_two_ways_and_the_library(length: int, kind: str | None) -> None:
    """As they were measured: products that waste what warps hold, and cuFFT's primes 29 and 31."""
    method = method_for(length)
    wide = wide_fits(method.kind, length, length)
    found = choose(method, PRECISIONS["3xfp16"], HOPPER, wide=wide)
    assert getattr(found.plan, "kind", None) == kind


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
@pytest.mark.parametrize(
    ("length", "kind"),
    [(36, "dense"), (88, None), (96, "dense"), (100, None), (102, None),
     (126, "dense"), (155, None), (209, None), (332, "butterfly"), (455, None), (551, None),
     (777, None), (1421, None), (2120, "two_factor"), (8073, None)],
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
    """As they were measured: rows of a thread, even stages, and multiples of eight are cuFFT's."""
    choice = choose(method_for(length), PRECISIONS[precision], HOPPER, wide=length % 2 == 0)
    assert (choice.plan is not None) == ours
    assert not choice.asks


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
    ("length", "numbers", "precision", "kind"),
    [(782, 0, "tf32", "two_factor"), (4180, 0, "3xfp16", "two_factor"),
     (9425, 0, "3xtf32", "butterfly"), (12_000, 0, "3xfp16", "two_factor"),
     (1218, 6, "tf32", "two_factor"), (1218, 6, "3xfp16", "two_factor"), (1218, 6, "3xtf32", None),
     (1740, 29, "tf32", None), (2496, 12, "fp16", "two_factor"), (2496, 12, "3xfp16", None),
     (1131, 3, "3xtf32", "butterfly"), (3509, 11, "tf32", None), (1972, 4, "3xfp16", None),
     (247, 13, "tf32", None), (308, 4, "tf32", None)],
)  # fmt: skip
def test_kernels_of_cufft_decide(
    length: int, numbers: int, precision: str, kind: str | None
) -> None:
    """As an H200's cuFFT was asked and measured: several kernels, and threads without work."""
    method, row = method_for(length), PRECISIONS[precision]
    wide = wide_fits(method.kind, length, length)
    by_factors = choose(method, row, HOPPER, wide=wide)
    assert by_factors.plan is None
    assert by_factors.asks
    kernels = LibraryKernels(several=numbers == 0, numbers=numbers)
    found = choose(method, row, HOPPER, wide=wide, library=kernels)
    assert getattr(found.plan, "kind", None) == kind
    assert not found.asks


@pytest.mark.parametrize(
    ("length", "ours"),
    [(14_848, False), (24_389, False), (41_984, False), (49_664, True), (79_507, True),
     (115_168, True), (229_616, True), (999_424, False), (1_040_384, True)],
)  # fmt: skip
def test_cufft_has_butterflies_of_some_primes(length: int, ours: bool) -> None:
    """Long lengths as they were measured: of 29, 29^3, 41, 97, 43^3, 59 x 61, 113 x 127."""
    found = choose(method_for(length), PRECISIONS["3xfp16"], HOPPER, wide=False)
    assert (found.plan is not None) == ours
    if not ours:
        assert "prime factors it has butterflies of" in str(found)
