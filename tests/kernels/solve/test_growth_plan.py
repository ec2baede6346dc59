"""The kernel that sums squares, without a GPU: it compiles, and no block is idle."""

from __future__ import annotations

from argand.device import Arch
from argand.runtime.complex_types import ITEM
from argand.solve.growth_plan import GROWTH_KERNEL, growth_blocks, growth_source

from tests.kernels.compiled import assert_clean


def test_kernels_compile(arch: Arch) -> None:
    for dtype in ITEM:
        assert_clean(growth_source(dtype), arch.target, GROWTH_KERNEL)


def test_blocks() -> None:
    assert growth_blocks(1, 132) == 1
    assert growth_blocks(100, 132) == 20
    assert growth_blocks(8192, 132) == 528
