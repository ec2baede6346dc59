"""Every kernel of transforms compiles without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import pytest
from argand import PRECISIONS
from argand.device import Arch
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
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.multiprocessor import registers
from argand.precision import Precision

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
