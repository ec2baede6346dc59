"""Every kernel of transforms compiles without a GPU, and what no plan may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from argand import PRECISIONS
from argand.device import HOPPER, Arch, arch_for
from argand.dft.butterfly import ButterflyPlan
from argand.dft.candidates import candidates as dft_candidates
from argand.dft.candidates import ordered
from argand.dft.cluster import ClusterPlan
from argand.dft.hankel import HankelPlan
from argand.dft.legality import check_dft_plan, wide_fits
from argand.dft.method import Method, dense, method_for
from argand.dft.method import product as dft_product
from argand.dft.mixed_radix import LARGEST_MIXED_RADIX, MixedRadixPlan
from argand.dft.plan import DensePlan, Plan, TwoFactorPlan, dft_source, kernel_names
from argand.dft.registers import other_registers
from argand.dft.scale import SCALE_KERNEL, scale_source
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.multiprocessor import registers
from argand.precision import Precision
from argand.runtime.plan import PlanError

from tests.covers import EXHAUSTIVE
from tests.kernels.compiled import Candidate, Kernels, assert_clean, offered, refused
from tests.kernels.precisions import TENSOR

PRODUCT_PLANS = (DensePlan, TwoFactorPlan, HankelPlan)
"""Plans of products; the kernels of all others are the same at every precision."""
DENSE = (2, 64, 97, 127, 163, 251, 331, 383, 457, 509, 719)
PRODUCTS = ((16, 16), (40, 25), (32, 32))
CONVOLVED = (
    254, 280, 434, 521, 999, 1009, 1018, 2039, 4093, 5005, 8191, 8281, 10_007, 14_009, 16_384,
    57_337, 65_536, 262_139, 1_000_003, 16_432, 47_190, 82_944, 923_521,
)  # fmt: skip
EVERY = [
    *map(dense, DENSE),
    *(dft_product(*pair) for pair in PRODUCTS),
    *map(method_for, CONVOLVED),
]
OF_EACH_KIND = [
    *map(dense, (2, 127, 509)),
    dft_product(16, 16),
    *map(method_for, (280, 1009, 3249, 10_007, 14_009, 16_384, 16_432, 65_536)),
]


def kernels() -> Iterator[Candidate]:
    """For each kind of kernel the best plan, a middling one and that with fewest spare registers.

    The default precision at every length in the exhaustive run, else some of each kind: to find
    plans takes long, and to compile them longer.
    """
    for precision, arch in offered(TENSOR):
        for method in EVERY if EXHAUSTIVE and precision == "3xfp16" else OF_EACH_KIND:
            for wide in {False, wide_fits(method.kind, method.length, method.length)}:
                for one in kernels_of(precision, arch, method, wide=wide):
                    if precision == "3xfp16" or isinstance(one.plan, PRODUCT_PLANS):
                        yield one


def kernels_of(precision: str, arch: Arch, method: Method, *, wide: bool) -> Iterator[Candidate]:
    kinds: dict[tuple[str, bool], list[Plan]] = {}
    found = dft_candidates(method, PRECISIONS[precision], arch, wide=wide)
    for plan in ordered(found, PRECISIONS[precision]):
        kinds.setdefault((plan.kind, getattr(plan, "rader", False)), []).append(plan)
    for some in kinds.values():
        tightest = min(some, key=lambda plan: spare_registers(plan, PRECISIONS[precision]))
        for place, plan in (
            ("best", some[0]), ("middling", some[len(some) // 2]), ("tightest", tightest)
        ):  # fmt: skip
            sizes = {
                one.name for one in fields(plan) if not isinstance(getattr(plan, one.name), bool)
            }
            by = (("method", method.kind), ("place", place))
            yield Candidate(precision, arch, plan, by, ignored=frozenset(sizes))


def spare_registers(plan: Plan, precision: Precision) -> int:
    """Registers of a thread that the plan counts no use of, in the blocks that it asks for."""
    if isinstance(plan, ThreeKernelPlan | TwoPassPlan):
        return min(
            registers(plan.kernel_blocks(role) * plan.kernel_threads(role))
            - plan.kernel_registers(role)
            for role in plan.roles
        )
    blocks = plan.blocks_per_sm if isinstance(plan, ClusterPlan | MixedRadixPlan) else 1
    have = registers(blocks * plan.threads)
    return have - plan.data_registers - other_registers(precision, plan)


KERNELS = Kernels(kernels)


@pytest.mark.slow
@pytest.mark.parametrize("precision", TENSOR)
def test_every_transform(arch: Arch, precision: str) -> None:
    row = PRECISIONS[precision]
    for plan in dict.fromkeys(candidate.plan for candidate in KERNELS.of(precision, arch)):
        check_dft_plan(plan, row, arch)
        for name in kernel_names(plan, row):
            assert_clean(dft_source(plan, row), arch.target, name)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1] if EXHAUSTIVE else [0])
@pytest.mark.parametrize("radix", range(13, LARGEST_MIXED_RADIX + 1, 1 if EXHAUSTIVE else 8))
def test_mixed_radices_of_no_spare_register(arch: Arch, radix: int, place: int) -> None:
    """Plans of two stages whose blocks leave a thread the fewest registers that a radix needs."""
    row = PRECISIONS["3xfp16"]
    other = 11 if radix > 17 else 9
    radices = (radix, other) if place == 0 else (other, radix)
    every = (
        MixedRadixPlan(radices, transforms, warps) for transforms in (3, 7) for warps in (2, 3, 4)
    )
    plan = min(every, key=lambda plan: spare_registers(plan, row))
    assert spare_registers(plan, row) < 32
    assert_clean(dft_source(plan, row), arch.target, kernel_names(plan, row)[0])


def test_which_kernels_differ_by_precision(arch: Arch) -> None:
    """Only those of products: without the names of kernels the sources of others are the same."""

    def without_names(plan: Plan, row: Precision) -> str:
        source = dft_source(plan, row)
        for name in kernel_names(plan, row):
            source = source.replace(name, "kernel")
        return source

    rows = [PRECISIONS[name] for name in TENSOR if not refused(name, arch)]
    for candidate in KERNELS.of("3xfp16", arch):
        plan = candidate.plan
        count = len({without_names(plan, row) for row in rows})
        assert count == (len(rows) if isinstance(plan, PRODUCT_PLANS) else 1), plan


def test_the_factor_of_a_librarys_transforms(arch: Arch) -> None:
    for output in ("complex64", "complex128"):
        assert_clean(scale_source(output), arch.target, SCALE_KERNEL)


TWO_FACTOR = TwoFactorPlan(32, 32, 2, 1, 7, 2, True)
HANKEL = HankelPlan(251, row_copies=2, warpgroups=1, groups=3, buffers=6, wide_copies=True)
CHIRP = ButterflyPlan(100, False, (16, 16), 1, 4)
LONG_CHIRP = ButterflyPlan(4093, False, (32, 16, 16), 8, 1)
POWERS = ButterflyPlan(1009, True, (16, 9, 7), 2, 8)
MIXED = MixedRadixPlan((14, 20), 3, 2)
SINGLE = SingleCtaPlan(32, 16)
CLUSTER = ClusterPlan((16, 16, 16, 16), 4, 16, 1)
TWO_PASS = TwoPassPlan(16_432, (8, 13), (2, 79), (16, 16), (7, 3))
THREE_KERNEL = ThreeKernelPlan(20_011, (16, 16), (10, 16), 16, 8, 1, 8)


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        (TWO_FACTOR, {"warps": 1}, "must hold all"),
        (TWO_FACTOR, {"n1": 1}, "n1 must be at least 2, got 1"),
        (TWO_FACTOR, {"n1": 121}, "factors must be at most 120"),
        (TWO_FACTOR, {"groups": 0}, "groups must be at least 1, got 0"),
        (TWO_FACTOR, {"groups": 16}, "at most 15, got 16"),
        (TWO_FACTOR, {"groups": 9}, "registers beside them are more than"),
        (TWO_FACTOR, {"buffers": 9, "groups": 6}, "than the 232448 that a block has on sm_90a"),
        (TWO_FACTOR, {"n2": 31, "n1": 31}, "need an even length, got 961"),
        (HANKEL, {"length": 293, "buffers": 5}, "no registers for a k-tile's high-order terms"),
        (HANKEL, {"length": 255}, "need an odd prime, got 255"),
        (HANKEL, {"row_copies": 3}, r"row_copies must be one of \[1, 2\], got 3"),
        (HANKEL, {"buffers": 2}, "3 groups need as many buffers"),
        (HANKEL, {"buffers": 5, "wide_copies": False}, "or more and wide copies, got 5 in all"),
        (HANKEL, {"length": 1021, "row_copies": 1}, "at most 256 columns, got 512"),
        (HANKEL, {"groups": 4, "buffers": 8}, "registers beside them"),
        (HANKEL, {"buffers": 12}, "more than the 232448"),
        (HANKEL, {"groups": 1, "buffers": 1, "length": 1009}, "256 data registers per thread"),
        (CHIRP, {"radices": (200,)}, r"radices must be 2 to 4 numbers from 2 to 64, got \(200,\)"),
        (CHIRP, {"radices": (16, 8)}, "must be at least 199"),
        (CHIRP, {"radices": (32, 32), "warps": 16, "groups": 2}, "beside them are more than"),
        (LONG_CHIRP, {"groups": 4}, "registers beside them are more than"),
        (POWERS, {"radices": (16, 9, 8)}, "has not 1152 numbers"),
        (POWERS, {"length": 1001}, "of a prime 1001"),
        (POWERS, {"groups": 16}, "at most 15, got 16"),
        (MIXED, {"radices": (280,)}, "radices must be 2 to 4 numbers"),
        (MIXED, {"radices": (7, 41)}, "from 2 to 40, got .7, 41."),
        (MIXED, {"transforms": 0}, "transforms must be at least 1"),
        (MIXED, {"warps": 33}, "a block has at most 1024 threads"),
        (MIXED, {"radices": (36, 37), "warps": 20}, "registers beside them"),
        (MIXED, {"transforms": 120}, "than the 232448 that a block"),
        (SINGLE, {"last_radix": 12}, r"powers of two, got \(32, 12\)"),
        (SINGLE, {"radix": 64}, r"at most 32, a multiple of the last one, .* got \(64, 16\)"),
        (SINGLE, {"last_radix": 32}, "beside them are more than"),
        (CLUSTER, {"cluster_size": 3}, "must be a power of two from 2 to 8, got 3"),
        (CLUSTER, {"cluster_size": 16}, "must be a power of two from 2 to 8, got 16"),
        (CLUSTER, {"radices": (16, 16, 16, 12)}, "powers of two"),
        (CLUSTER, {"warps": 1}, "whole butterflies"),
        (CLUSTER, {"warps": 64}, "at most 1024 threads, got 2048"),
        (CLUSTER, {"blocks_per_sm": 2}, "registers beside them are more than"),
        (CLUSTER, {"cluster_size": 2}, "registers beside them are more than"),
        (TWO_PASS, {"length": 16_431}, "are not 16431"),
        (TWO_PASS, {"columns": (104, 1)}, "got .104, 1."),
        (TWO_PASS, {"lines": (79, 2)}, "a first radix is at most"),
        (TWO_PASS, {"length": 104 * 262, "lines": (2, 131)}, "or a prime up to 127, got .2, 131."),
        (TWO_PASS, {"widths": (16, 24)}, "tiles of .16, 32. columns"),
        (TWO_PASS, {"block_warps": (0, 2)}, "whole warps are needed"),
        (TWO_PASS, {"block_warps": (32, 2)}, "registers beside them"),
        (TWO_PASS, {"length": 104 * 79 * 32, "lines": (32, 79)}, "than the 232448 that a block"),
        (THREE_KERNEL, {"length": 20_481}, "must be at least 40961"),
        (THREE_KERNEL, {"columns": (1, 16)}, "from 2 to 64, got .1, 16."),
        (THREE_KERNEL, {"radices": (160,)}, "radices must be two of columns and 2 to 4 of lines"),
        (THREE_KERNEL, {"width": 24}, "whole tiles and threads of 24"),
        (THREE_KERNEL, {"radices": (32, 32, 32)}, "lines of at most 16384 numbers"),
        (THREE_KERNEL, {"columns": (64, 64), "width": 16}, "than the 232448 that a block"),
        (THREE_KERNEL, {"tile_warps": 32}, "registers beside them"),
        (THREE_KERNEL, {"groups": 16, "warps": 2}, "at most 15, got 16"),
    ],
)  # fmt: skip
def test_an_illegal_plan_says_why(plan: Plan, change: dict[str, Any], message: str) -> None:
    row, arch = PRECISIONS["3xfp16"], arch_for(HOPPER)
    check_dft_plan(plan, row, arch)
    with pytest.raises(PlanError, match=message):
        check_dft_plan(replace(plan, **change), row, arch)
